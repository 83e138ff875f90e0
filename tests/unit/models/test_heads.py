"""All heads: packed as padded, saved and loaded, drawn anew only when they are asked for."""

import json

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.inference.small import build_config

import bertkit
from bertkit.base.errors import CheckpointError, InputError, SettingsError
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.fine_tuning import (
    BertForMultipleChoice,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from bertkit.models.bert.heads import (
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
)
from bertkit.models.bert.pretrained import PretrainedBert
from bertkit.nn.packing import PackedBatch

SIZES = {"vocab_size": 30, "num_hidden_layers": 1, "max_position_embeddings": 12}
LABELS = {0: "no", 1: "yes", 2: "perhaps"}
NUM_LABELS = {BertForSequenceClassification: 3, BertForTokenClassification: 3}
IDS = torch.tensor([[5, 6, 7, 8, 9], [10, 11, 12, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def build(kind: type[PretrainedBert], **changes: object) -> PretrainedBert:
    torch.manual_seed(0)
    labels = {"num_labels": NUM_LABELS[kind]} if kind in NUM_LABELS else {}
    return kind(build_config(**{**SIZES, **labels, **changes})).eval()


def packed() -> PackedBatch:
    return PackedBatch.from_padded(IDS, torch.zeros_like(IDS), MASK.bool())


@pytest.mark.usefixtures("unchecked_shapes")
def test_choices_of_other_shapes_are_refused():
    model = build(BertForMultipleChoice)
    with pytest.raises(InputError, match=r"\[batch, choices, length\], got \[2, 5\]"):
        model(IDS)
    with pytest.raises(InputError, match=r"attention_mask is \[1, 5\] and must be \[1, 2, 5\]"):
        model(IDS[None], attention_mask=MASK[None, 0])
    with pytest.raises(InputError, match=r"attention_mask is \[2, 1, 5\] and must be \[1, 2, 5\]"):
        model(IDS[None], attention_mask=MASK[:, None])
    with pytest.raises(InputError, match=r"token_type_ids is \[5\] and must be \[1, 2, 5\]"):
        model(IDS[None], token_type_ids=IDS[0])


def test_a_question_answering_model_has_two_outputs():
    with pytest.raises(SettingsError, match=r"num_labels \(3\) must be 2"):
        build(BertForQuestionAnswering, num_labels=3)


@pytest.mark.parametrize(
    "kind", [BertForSequenceClassification, BertForTokenClassification, BertForMultipleChoice]
)
@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({"hidden_dropout_prob": 0.25}, 0.25),
        ({"hidden_dropout_prob": 0.25, "classifier_dropout": 0.0}, 0.0),
        ({"hidden_dropout_prob": 0.0, "classifier_dropout": 0.5}, 0.5),
    ],
)
def test_a_classifier_has_its_own_dropout(kind, rates, expected):
    model = build(kind, attention_probs_dropout_prob=0.0, **rates)
    assert model.dropout.rate == expected
    model.encoder.eval()
    model.dropout.train()
    ids = IDS[None, :1] if kind is BertForMultipleChoice else IDS[:1]
    torch.manual_seed(0)
    same = torch.stack([model(ids) for _ in range(8)])
    assert bool((same == same[0]).all()) == (expected == 0.0)


HEADS = [name for name in bertkit.__all__ if name.startswith("BertFor")]


@pytest.mark.parametrize("name", HEADS)
def test_weights_labels_and_architecture_come_back(tmp_path, name):
    kind = getattr(bertkit, name)
    model = build(kind, problem_type="multi_label_classification", classifier_dropout=0.3)
    model.save_pretrained(tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    assert content["architectures"] == [name]
    again = kind.from_pretrained(tmp_path)
    assert again.new_heads == ()
    assert again.config.to_dict().items() >= model.config.to_dict().items()
    assert again.state_dict().keys() == model.state_dict().keys()
    for key, tensor in again.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[key]), key
    assert all(parameter.requires_grad for parameter in again.parameters())


def test_a_head_can_begin_at_the_frequencies_of_words():
    model = build(BertForMaskedLM, vocab_size=6)
    model.masked_lm.start_at_frequencies(torch.tensor([0, 3, 1, 0]))  # two words are not counted
    frequencies = model.masked_lm.bias.exp()
    assert_close(frequencies, torch.tensor([0.1, 0.4, 0.2, 0.1, 0.1, 0.1]))


@pytest.mark.parametrize(
    ("kind", "heads"),
    [
        (BertForSequenceClassification, ("classifier",)),
        (BertForTokenClassification, ("classifier",)),
        (BertForQuestionAnswering, ("qa_outputs",)),
        (BertForMultipleChoice, ("classifier",)),
        (BertForMaskedLM, ()),
        (BertForNextSentencePrediction, ()),
    ],
)
def test_heads_are_drawn_only_when_they_are_asked_for(tmp_path, kind, heads):
    whole = build(BertForPreTraining)
    whole.save_pretrained(tmp_path)
    if heads:
        with pytest.raises(CheckpointError, match=rf"no {heads[0]} head, which {kind.__name__}"):
            kind.from_pretrained(tmp_path)
    torch.manual_seed(1)
    model = kind.from_pretrained(tmp_path, new_heads=True)
    assert model.new_heads == heads
    assert not model.training
    for name, tensor in model.state_dict().items():
        if name.partition(".")[0] not in heads:
            assert torch.equal(tensor, whole.state_dict()[name]), name
    for head in heads:
        layer = model.get_submodule(head)
        assert not layer.bias.any()
        assert 0.2 < float(layer.weight.detach().std()) < 0.8
        assert layer.weight.requires_grad
    torch.manual_seed(1)
    again = kind.from_pretrained(tmp_path, new_heads=True).state_dict()
    assert all(torch.equal(tensor, again[name]) for name, tensor in model.state_dict().items())


def test_a_new_pooler_is_a_new_head_too(tmp_path):
    BertModel(build_config(**SIZES), has_pooler=False).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="no pooler and no classifier head"):
        BertForSequenceClassification.from_pretrained(tmp_path)
    model = BertForSequenceClassification.from_pretrained(tmp_path, new_heads=True, id2label=LABELS)
    assert model.new_heads == ("pooler", "classifier")
    model(IDS)


@pytest.mark.parametrize("changes", [{"id2label": LABELS}, {"num_labels": 3}])
def test_new_labels_take_the_place_of_the_old(tmp_path, changes):
    old = {"id2label": {0: "a", 1: "b"}, "label2id": {"a": 0, "b": 1}, "num_labels": 2}
    build(BertForPreTraining, **old).save_pretrained(tmp_path)
    model = BertForSequenceClassification.from_pretrained(tmp_path, new_heads=True, **changes)
    assert model.classifier.weight.shape == (3, 8)
    assert model.config.id2label == changes.get("id2label", {n: f"LABEL_{n}" for n in range(3)})
    model.save_pretrained(tmp_path / "again")
    again = BertForSequenceClassification.from_pretrained(tmp_path / "again")
    assert again.config.label2id == model.config.label2id
    assert again.config.num_labels == 3


@pytest.mark.parametrize("new_heads", [False, True])
def test_a_trained_head_of_other_labels_is_never_replaced(tmp_path, new_heads):
    build(BertForSequenceClassification).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"a classifier for 3 labels, and .* has 2; keep"):
        BertForSequenceClassification.from_pretrained(tmp_path, new_heads=new_heads, num_labels=2)


def test_a_config_that_contradicts_its_classifier_is_refused(tmp_path):
    build(BertForTokenClassification).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    content = json.loads(path.read_text())
    del content["id2label"], content["label2id"]
    path.write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=r"a classifier for 3 labels, and .* has 2"):
        BertForTokenClassification.from_pretrained(tmp_path)


@pytest.mark.parametrize("name", ["hiden_dropout_prob", "torch_dtype", "local_files_only"])
def test_what_is_no_key_of_the_config_is_refused(tmp_path, name):
    build(BertForMaskedLM).save_pretrained(tmp_path)
    with pytest.raises(SettingsError, match=f"'{name}' is neither an argument nor a config key"):
        BertForMaskedLM.from_pretrained(tmp_path, **{name: True})


def test_labels_that_answers_cant_have_are_the_checkpoints_mistake(tmp_path):
    build(BertForMaskedLM, num_labels=3).save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=rf"{tmp_path}.*num_labels \(3\) must be 2"):
        BertForQuestionAnswering.from_pretrained(tmp_path, new_heads=True)
    assert BertForQuestionAnswering.from_pretrained(tmp_path, new_heads=True, num_labels=2)


@pytest.mark.parametrize("kind", [BertForSequenceClassification, BertForMultipleChoice])
def test_scores_of_first_tokens_are_those_of_all_states(kind):
    config = build_config(**{**SIZES, "num_hidden_layers": 2})
    model = kind(config).double().eval()
    batch = PackedBatch.from_single([[2, 5, 7, 3], [2, 3], [2, 6, 3]])
    expected = model.head_scores(model.states(batch), batch)
    assert_close(model.scores(batch), expected)
    assert model.encoder.summary_states(batch).shape == (3, config.hidden_size)


@pytest.mark.parametrize("precision", [None, torch.bfloat16])
def test_recomputed_blocks_have_the_same_loss_and_gradients_in_less_memory(precision):
    sizes = {
        "num_hidden_layers": 3,
        "hidden_dropout_prob": 0.3,
        "attention_probs_dropout_prob": 0.3,
    }
    found = {}
    for recomputes in (False, True):
        model = build(BertForMaskedLM, **sizes).train()
        model.encoder.recomputes = recomputes
        torch.manual_seed(1)
        kept = []
        with (
            torch.autograd.graph.saved_tensors_hooks(
                lambda tensor, kept=kept: kept.append(tensor.nbytes) or tensor,
                lambda tensor: tensor,
            ),
            torch.autocast("cpu", dtype=precision, enabled=precision is not None),
        ):
            loss, _ = model.masked_loss(packed(), torch.tensor([1, 6]), torch.tensor([5, 7]))
        loss.backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        found[recomputes] = [loss.detach(), *gradients, torch.rand(1)], sum(kept)
    (exact, all_kept), (again, few_kept) = found[False], found[True]
    assert all(map(torch.equal, exact, again))
    assert few_kept < all_kept / 3
