"""Recurrent nets: a batch is as each sequence alone, what is learned, what is saved and refused."""

import json

import pytest
import torch
from tests.closeness import assert_close

from bertkit.base.errors import CheckpointError, DamagedFileError, MissingFileError, SettingsError
from bertkit.models.bert.encoder import BertModel
from bertkit.nn.packing import PackedBatch
from bertkit_studies.recurrent.classifier import RecurrentClassifier
from bertkit_studies.recurrent.config import (
    ClassifierConfig,
    LanguageModelConfig,
    SkipThoughtConfig,
)
from bertkit_studies.recurrent.language_model import RecurrentLanguageModel
from bertkit_studies.recurrent.skip_thought import SkipThought

SIZES = {"vocab_size": 16, "embedding_size": 12, "hidden_size": 16}
SENTENCES = [[2, 7, 8, 9, 3], [2, 3], [2, 5, 6, 7, 8, 9, 10, 3], [2, 4, 4, 3]]


def build(kind, **changes):
    torch.manual_seed(1)
    return kind(kind.config_kind(**SIZES, **changes)).double().eval()


def test_a_reader_that_is_not_trained_is_walked_forth_only():
    model, batch = build(RecurrentClassifier), PackedBatch.from_single(SENTENCES)
    reading = batch.num_tokens * model.reader.count_weights()
    whole = model.count_operations(batch)
    model.warm_start(build(RecurrentLanguageModel), freezes=True)
    assert whole - model.count_operations(batch) == 4 * reading


def test_the_forget_gates_of_an_lstm_begin_with_a_bias_of_one():
    reader = build(RecurrentClassifier, cell="lstm", num_layers=2).reader
    for net in (reader.from_start, reader.from_end):
        for layer in range(2):
            both = getattr(net, f"bias_ih_l{layer}") + getattr(net, f"bias_hh_l{layer}")
            enter, forget, cell, leave = both.split(SIZES["hidden_size"])
            assert forget.eq(1.0).all()
            for others in (enter, cell, leave):
                assert others.abs().max() < 0.6


def learn(model, loss_at, num_steps, learning_rate=0.02):
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    for step in range(num_steps):
        optimizer.zero_grad()
        loss_at(step)[0].backward()
        optimizer.step()


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("is_bidirectional", [True, False])
def test_a_batch_is_as_each_sequence_alone(cell, is_bidirectional):
    model = build(
        RecurrentClassifier, cell=cell, is_bidirectional=is_bidirectional, num_layers=2, dropout=0.2
    )
    found = model.reader(PackedBatch.from_single(SENTENCES))
    alone = [model.reader(PackedBatch.from_single([row])) for row in SENTENCES]
    assert_close(found, torch.cat(alone))


def test_each_direction_sees_one_side_alone():
    model = build(RecurrentLanguageModel)
    one = PackedBatch.from_single([[2, 5, 6, 7, 3]])
    other = PackedBatch.from_single([[2, 5, 6, 9, 3]])
    on = model.reader.read_forward(one) == model.reader.read_forward(other)
    back = model.reader.read_backward(one) == model.reader.read_backward(other)
    assert on.all(dim=1).tolist() == [True, True, True, False, False]
    assert back.all(dim=1).tolist() == [False, False, False, False, True]


def test_scores_and_loss_are_of_the_same_words():
    model = build(RecurrentLanguageModel)
    batch, positions = PackedBatch.from_single(SENTENCES), torch.tensor([0, 2, 8])
    labels = torch.tensor([7, 9, 1])
    scores = model.next_scores(batch, positions)
    assert_close(scores, model.next_scores(batch)[positions])
    loss, hits = model.next_loss(batch, positions, labels)
    expected = torch.nn.functional.cross_entropy(scores, labels, reduction="sum")
    assert_close(loss, expected)
    assert hits == (scores.argmax(dim=1) == labels).sum()


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_language_model_learns_that_a_last_word_agrees_with_the_first(cell):
    model = build(RecurrentLanguageModel, cell=cell, dropout=0.0, is_bidirectional=False)
    model = model.float().train()
    generator = torch.Generator().manual_seed(0)

    def draw(count):
        cues = torch.randint(4, 8, (count, 1), generator=generator)
        fillers = torch.randint(8, 16, (count, 3), generator=generator)
        batch = PackedBatch.from_single(torch.cat([cues, fillers, cues], dim=1).tolist())
        return batch, batch.last_tokens.long() - 1, cues[:, 0]

    learn(model, lambda _: model.next_loss(*draw(32)), 80)
    _, hits = model.eval().next_loss(*draw(100))
    assert hits >= 95  # 25 by chance


@pytest.mark.parametrize("pooling", ["max", "ends"])
@pytest.mark.parametrize("is_bidirectional", [True, False])
def test_a_classifier_learns_whether_a_word_is_there(pooling, is_bidirectional):
    model = build(RecurrentClassifier, pooling=pooling, is_bidirectional=is_bidirectional)
    model = model.float().train()
    generator = torch.Generator().manual_seed(0)

    def draw(count):
        lengths = torch.randint(3, 8, (count,), generator=generator).tolist()
        rows = [torch.randint(5, 16, (size,), generator=generator).tolist() for size in lengths]
        labels = torch.tensor([number % 2 for number in range(count)])
        for row, label in zip(rows, labels.tolist(), strict=True):
            row[1] = 4 if label else row[1]
        return PackedBatch.from_single(rows), labels

    learn(model, lambda _: model.loss(*draw(32)), 50)
    _, hits = model.eval().loss(*draw(100))
    assert hits >= 97


def test_a_classifier_begins_with_a_language_model_and_keeps_its_states():
    parent = build(RecurrentLanguageModel)
    model = build(RecurrentClassifier)
    model.warm_start(parent, freezes=True)
    batch = PackedBatch.from_single(SENTENCES)
    assert_close(model.reader(batch), parent.reader(batch))
    model.loss(batch, torch.tensor([0, 1, 0, 1]))[0].backward()
    trained = [name for name, each in model.named_parameters() if each.grad is not None]
    assert trained == ["classifier.weight", "classifier.bias"]
    smaller = RecurrentClassifier(ClassifierConfig(**{**SIZES, "hidden_size": 8}))
    with pytest.raises(SettingsError, match=r"hidden_size': 16.*hidden_size': 8"):
        smaller.warm_start(parent)


def test_skip_thought_learns_what_stands_beside_a_sentence():
    model = build(SkipThought, dropout=0.0).float().train()
    generator = torch.Generator().manual_seed(0)

    def draw(count):
        cues = torch.randint(4, 8, (count, 1), generator=generator)
        fillers = torch.randint(12, 16, (count, 2), generator=generator)
        middle = PackedBatch.from_single(torch.cat([cues, fillers], dim=1).tolist())
        sides = {"before": cues + 4, "after": 11 - cues}  # words that follow from the cue
        written = {side: PackedBatch.from_single([[2]] * count) for side in sides}
        return middle, written, {side: labels[:, 0] for side, labels in sides.items()}

    def loss_of(batch):
        middle, written, labels = batch
        vectors = model.encode(middle)
        parts = [model.neighbor_loss(side, vectors, written[side], labels[side]) for side in labels]
        return sum(loss for loss, _ in parts), sum(hits for _, hits in parts)

    learn(model, lambda _: loss_of(draw(32)), 80)
    _, hits = loss_of(draw(100))
    assert hits >= 190


def test_dropout_is_of_training_alone():
    model = build(RecurrentLanguageModel, dropout=0.5)
    batch = PackedBatch.from_single(SENTENCES)
    assert model.next_scores(batch).equal(model.next_scores(batch))
    model.train()
    assert not model.next_scores(batch).equal(model.next_scores(batch))


def test_operations_grow_with_tokens_and_with_predicted_words():
    model = build(RecurrentLanguageModel)
    batch = PackedBatch.from_single(SENTENCES)
    none = model.count_operations(batch, 0)
    gates = 4 * 16 * (12 + 16)
    assert none == 6 * batch.num_tokens * 2 * gates
    assert model.count_operations(batch, 5) - none == 6 * 5 * 2 * (16 * 12 + 12 * 16)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (RecurrentLanguageModel, {"cell": "gru", "num_layers": 2}),
        (RecurrentLanguageModel, {"is_bidirectional": False}),
        (RecurrentClassifier, {"pooling": "ends", "num_labels": 3}),
        (SkipThought, {}),
    ],
)
def test_what_is_saved_is_loaded(kind, changes, tmp_path):
    model = build(kind, **changes).float()
    model.save_pretrained(tmp_path)
    again = kind.from_pretrained(tmp_path)
    assert again.config == model.config
    assert not again.training
    for (name, one), (other_name, other) in zip(
        model.named_parameters(), again.named_parameters(), strict=True
    ):
        assert (name, one.requires_grad) == (other_name, other.requires_grad)
        assert one.equal(other)


def alter(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}))


def test_other_folders_are_refused(tmp_path):
    build(SkipThought).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="'bertkit-skip-thought'; expected 'bertkit-rec"):
        RecurrentLanguageModel.from_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="is a bertkit-skip-thought, not a BERT"):
        BertModel.from_pretrained(tmp_path)
    with pytest.raises(MissingFileError, match=r"config\.json"):
        SkipThought.from_pretrained(tmp_path / "none")
    alter(tmp_path, hidden_size=8)
    with pytest.raises(CheckpointError, match=r"encoder\.weight_ih_l0 is \[48, 12\] and must be"):
        SkipThought.from_pretrained(tmp_path)
    alter(tmp_path, hidden_size=1 << 40)
    with pytest.raises(CheckpointError, match=r"hidden_size must be at most"):
        SkipThought.from_pretrained(tmp_path)
    alter(tmp_path, hidden_size=16, layers=2)
    with pytest.raises(CheckpointError, match="layers is unknown"):
        SkipThought.from_pretrained(tmp_path)


def test_damaged_weights_are_refused(tmp_path):
    build(SkipThought).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DamagedFileError, match="isn't a whole safetensors file"):
        SkipThought.from_pretrained(tmp_path)


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    model = build(RecurrentLanguageModel)
    with torch.no_grad():
        model.bias[3] = torch.nan
    with pytest.raises(CheckpointError, match="NaN or infinity in bias"):
        model.save_pretrained(tmp_path)


def test_settings_that_cannot_be_meant_are_refused():
    with pytest.raises(SettingsError, match="cell must be 'lstm' or 'gru'"):
        LanguageModelConfig(vocab_size=10, cell="rnn")
    with pytest.raises(SettingsError, match="dropout"):
        SkipThoughtConfig(vocab_size=10, dropout=1.0)
