"""Runs of recurrent nets: taken up bit for bit, refused where something differs, and loaded."""

import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.closeness import close
from tests.letters import letters_tokenizer

from bertkit.base.errors import InputError, ResumeError, SettingsError
from bertkit.data.shards import ShardSet
from bertkit.decoders.seq2seq.token_pairs import TokenPairs, TokenTexts
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.log import read_log
from bertkit_studies.baselines.classifier import LabeledData, LabeledTexts, train_classifier
from bertkit_studies.baselines.language_model import plan_language_model, train_language_model
from bertkit_studies.baselines.settings import (
    ClassifierSettings,
    LanguageModelSettings,
    SkipThoughtSettings,
    TranslatorSettings,
)
from bertkit_studies.baselines.skip_thought import (
    SentencePlanner,
    plan_skip_thought,
    train_skip_thought,
)
from bertkit_studies.baselines.translator import train_translator
from bertkit_studies.recurrent.classifier import RecurrentClassifier
from bertkit_studies.recurrent.language_model import RecurrentLanguageModel
from bertkit_studies.recurrent.skip_thought import SkipThought
from bertkit_studies.recurrent.translator import AttentionalTranslator

SMALL = {
    "steps": 4,
    "checkpoint_every": 2,
    "eval_every": 2,
    "embedding_size": 6,
    "hidden_size": 8,
    "learning_rate": 1e-3,
    "device": "cpu",
}
TEXTS = ["a cat", "some dogs", "the dog", "one cat", "cats", "a dog ran"]


def language_model_run(shards, output, **changes):
    values = {"batch_size": 3, "max_length": 16, "eval_examples": 4, "accumulate": 2}
    settings = LanguageModelSettings(**SMALL | values | changes)
    return train_language_model(shards, output, settings)


def skip_thought_run(shards, output, **changes):
    values = {"batch_size": 3, "max_length": 6, "eval_examples": 4}
    return train_skip_thought(shards, output, SkipThoughtSettings(**SMALL | values | changes))


def translator_run(shards, output, held_out=(0, 3), **changes):
    tokenizer = letters_tokenizer()
    pairs = TokenPairs(
        TokenTexts.encode(TEXTS, tokenizer), TokenTexts.encode(TEXTS[::-1], tokenizer)
    )
    values = {"attention_size": 5, "tokens_per_batch": 40, "label_smoothing": 0.1}
    settings = TranslatorSettings(**SMALL | values | changes)
    measured = pairs.choose(np.array(held_out, dtype=np.int64))
    return train_translator(pairs, measured, tokenizer, output, settings)


def labeled(tokenizer=None):
    tokenizer = tokenizer or letters_tokenizer()
    labels = [int("dog" in text) for text in TEXTS]
    texts = LabeledTexts.encode(TEXTS, labels, tokenizer, 8)
    return LabeledData(texts, texts, 2, tokenizer)


def classifier_run(shards, output, parent=None, **changes):
    settings = ClassifierSettings(**SMALL | {"batch_size": 4} | changes)
    return train_classifier(labeled(), output, settings, parent)


RUNS = {
    RecurrentLanguageModel: language_model_run,
    SkipThought: skip_thought_run,
    AttentionalTranslator: translator_run,
    RecurrentClassifier: classifier_run,
}


def forget_last(output):
    """Leave the run as if it had been killed after its second step."""
    shutil.rmtree(output / "checkpoints" / "step-00000004")


def weights(checkpoint):
    return (checkpoint / "model.safetensors").read_bytes()


@pytest.mark.parametrize("kind", RUNS, ids=lambda kind: kind.__name__)
def test_a_run_is_taken_up_bit_for_bit(kind, shards, tmp_path):
    output = tmp_path / "run"
    result = RUNS[kind](shards, output)
    last, second = (output / "checkpoints" / f"step-0000000{step}" for step in (4, 2))
    first = weights(last)
    assert result.num_steps == 4
    assert result.num_tokens > 0
    assert math.isfinite(result.metrics["loss"])
    assert result.checkpoint in (last, second)
    assert first != weights(second)
    forget_last(output)
    again = RUNS[kind](shards, output)
    assert weights(last) == first
    assert (again.metrics, again.checkpoint) == (result.metrics, result.checkpoint)
    assert RUNS[kind](shards, output) == again  # a finished run is only reported
    assert not kind.from_pretrained(output).training
    assert (last / "tokenizer.json").is_file()


def test_the_checkpoint_with_the_lowest_loss_is_the_result(tmp_path):
    data = labeled()
    wrong = LabeledTexts(data.train.texts, 1 - data.train.labels)  # learning makes these worse
    choices = {"steps": 8, "keep": 1, "learning_rate": 0.05, "precision": "fp32"}
    settings = ClassifierSettings(**SMALL | choices)
    result = train_classifier(replace(data, held_out=wrong), tmp_path / "run", settings)
    rows = [row for row in read_log(tmp_path / "run" / "log.jsonl") if row["event"] == "eval"]
    losses = {row["step"]: row["loss"] for row in rows[1:]}
    assert result.best_step == min(losses, key=losses.__getitem__)
    assert result.best_step < result.num_steps
    assert result.metrics["loss"] == losses[result.best_step]
    net = RecurrentClassifier.from_pretrained(result.checkpoint)
    batch = wrong.pick(np.arange(len(TEXTS)))
    loss, _ = net.loss(batch.packed, batch.labels)
    assert loss.item() / len(TEXTS) == close(result.metrics["loss"], "float32")


def test_other_settings_data_or_folders_are_refused(shards, tmp_path):
    run = tmp_path / "run"
    classifier_run(shards, run)
    with pytest.raises(ResumeError, match=r"--hidden-size 8 → 9"):
        classifier_run(shards, run, hidden_size=9)
    with pytest.raises(ResumeError, match="--steps 4 → 6"):
        classifier_run(shards, run, steps=6)
    with pytest.raises(ResumeError, match="was started with other settings"):
        language_model_run(shards, run)
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("mine")
    with pytest.raises(ResumeError, match="holds something that this command didn't write"):
        classifier_run(shards, other)


def test_a_classifier_learns_on_a_language_models_states(shards, tmp_path):
    parent = language_model_run(shards, tmp_path / "parent").checkpoint
    result = classifier_run(shards, tmp_path / "run", parent, freezes_reader=True)
    kept = RecurrentLanguageModel.from_pretrained(parent).reader.state_dict()
    net = RecurrentClassifier.from_pretrained(result.checkpoint)
    assert all(net.reader.state_dict()[name].equal(tensor) for name, tensor in kept.items())
    first = weights(result.checkpoint)
    forget_last(tmp_path / "run")
    again = classifier_run(shards, tmp_path / "run", parent, freezes_reader=True)
    assert weights(again.checkpoint) == first
    other = language_model_run(shards, tmp_path / "other", seed=1).checkpoint
    with pytest.raises(ResumeError, match="source: different files"):
        classifier_run(shards, tmp_path / "run", other, freezes_reader=True)
    with pytest.raises(SettingsError, match=r"'cell': 'lstm'.*'cell': 'gru'"):
        classifier_run(shards, tmp_path / "gru", parent, cell="gru")


def test_a_language_model_of_other_words_is_refused(shards, tmp_path):
    parent = language_model_run(shards, tmp_path / "parent").checkpoint
    words = letters_tokenizer().vocabulary
    other = labeled(Tokenizer((*words[:-2], words[-1], words[-2])))
    settings = ClassifierSettings(**SMALL | {"batch_size": 4})
    with pytest.raises(InputError, match="has another tokenizer than the texts"):
        train_classifier(other, tmp_path / "run", settings, parent)
    with pytest.raises(SettingsError, match="freezes_reader freezes the weights of a language"):
        classifier_run(shards, tmp_path / "run", freezes_reader=True)
    assert not (tmp_path / "run").exists()


def test_a_translator_without_held_out_pairs_is_refused(shards, tmp_path):
    with pytest.raises(InputError, match="no held-out pairs"):
        translator_run(shards, tmp_path / "run", held_out=())


def first_batch(plan):
    return plan.collate(plan.examples_at(0))


def test_words_before_are_those_that_stand_before(shards):
    settings = LanguageModelSettings(**SMALL | {"batch_size": 3, "max_length": 16})
    batch = first_batch(plan_language_model(shards, settings))
    ids = batch.packed.input_ids
    assert batch.target_counts == {"clm": len(batch.labels), "previous": len(batch.labels)}
    assert batch.labels.equal(ids[batch.positions + 1])
    assert not {int(place) for place in batch.packed.last_tokens} & set(batch.positions.tolist())
    one_way = settings.model_copy(update={"is_bidirectional": False})
    batch = first_batch(plan_language_model(shards, one_way))
    assert batch.target_counts == {"clm": len(batch.labels)}


def test_sentences_stand_between_those_of_their_document(shards):
    shard = ShardSet.open(shards).train[0]
    planner = SentencePlanner([shard], 6, cls_id=2, sep_id=3)
    rows = planner.plan(0, 0)
    offsets = shard.sentence_offsets.astype(int)
    inside = [1, 5, 6, 7, 12, 13]  # of documents of 3, 1, 5, 2 and 4 sentences
    assert rows.tolist() == [offsets[number - 1 : number + 3].tolist() for number in inside]


def test_sentences_are_cut_and_shifted(shards):
    settings = SkipThoughtSettings(**SMALL | {"batch_size": 2, "max_length": 6})
    batch = first_batch(plan_skip_thought(shards, settings))
    assert max(batch.middle.lengths) <= 6
    assert batch.middle.input_ids[batch.middle.last_tokens].tolist() == [3, 3]
    for written in batch.neighbors.values():
        inputs = written.packed.input_ids.split(written.packed.lengths)
        labels = written.labels.split(written.packed.lengths)
        for one, other in zip(inputs, labels, strict=True):
            assert one[0] == 2
            assert other[-1] == 3
            assert one[1:].equal(other[:-1])
    assert batch.num_tokens == batch.middle.num_tokens + sum(batch.target_counts.values())


def test_labels_must_be_as_many_as_texts():
    with pytest.raises(InputError, match="as many labels as texts, at least one; got 1 and 2"):
        LabeledTexts.encode(["a", "b"], [1], letters_tokenizer(), 8)
    with pytest.raises(InputError, match="got 0 and 0"):
        LabeledTexts.encode([], [], letters_tokenizer(), 8)
    for labels in ([0.9, 1.7], ["good", "bad"]):
        with pytest.raises(InputError, match="labels must be whole numbers from 0"):
            LabeledTexts.encode(["a", "b"], labels, letters_tokenizer(), 8)


@pytest.mark.parametrize("label", [-1, 2])
def test_labels_are_those_that_there_are(label):
    tokenizer = letters_tokenizer()
    texts, others = (LabeledTexts.encode(["a"], [one], tokenizer, 8) for one in (1, label))
    with pytest.raises(InputError, match=f"expected labels from 0 to 1; got {label} to {label}"):
        LabeledData(texts, others, 2, tokenizer)


def test_shards_without_held_out_text_are_refused(shards, monkeypatch):
    opened = ShardSet.open(shards)
    for split, message in (("held_out", "no held-out text"), ("train", "no training text")):
        monkeypatch.setattr(ShardSet, "open", lambda _, split=split: replace(opened, **{split: ()}))
        with pytest.raises(InputError, match=message):
            plan_language_model(shards, LanguageModelSettings(**SMALL))


def test_dropout_follows_from_the_step(shards, tmp_path):
    one = classifier_run(shards, tmp_path / "one", dropout=0.5, seed=3)
    torch.manual_seed(99)
    other = classifier_run(shards, tmp_path / "other", dropout=0.5, seed=3)
    assert weights(one.checkpoint) == weights(other.checkpoint)
