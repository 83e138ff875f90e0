"""The study of features holds together, and gives all arms as much."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bertkit.base.errors import MissingExtraError, SettingsError
from bertkit.base.settings import validate
from bertkit_studies.baselines import vector_sources
from bertkit_studies.baselines.vector_sources import (
    LEARNERS,
    SKIP_GRAM,
    Learning,
    learn_skip_gram,
    learn_skip_thought,
)
from bertkit_studies.experiments import features
from bertkit_studies.experiments.features import LAST_FOUR, LAST_LAYER, Features, VectorArm
from bertkit_studies.probes import downstream, pretraining
from bertkit_studies.probes.downstream import LabeledTask
from bertkit_studies.probes.pretraining import (
    NUM_PARTS,
    TASKS,
    TOKENS,
    PretrainingStudy,
    name_steps,
)
from bertkit_studies.probes.probes import LABELED
from bertkit_studies.settings import FeaturesSettings
from bertkit_studies.study import Cell, Decision


def build(**changes) -> Features:
    return Features(validate(FeaturesSettings, {"data": "shards", **changes}, "flags"))


@pytest.mark.parametrize("size", ["small", "large"])
def test_arms_share_one_encoder_of_four_layers(size):
    study = build(size=size)
    arms = {arm.name: arm for arm in study.arms}
    assert [name for name, arm in arms.items() if arm.shares is None] == ["fine-tuned"]
    assert arms.keys() >= LEARNERS.keys()
    assert {name for name, arm in arms.items() if isinstance(arm, VectorArm)} == {
        LAST_FOUR,
        LAST_LAYER,
    }
    assert study.scale.pretraining["size"] == "mini"
    for arm in study.arms:
        study.choose(arm, 1, 80)
        study.scale.fine_tuning.choose(1, "cpu", arm.fine_tuning)


@pytest.mark.parametrize(("labeled", "measure"), [(None, "pairs"), ("train.csv", "labeled")])
def test_claims_are_held_against_labels_where_there_are_any(labeled, measure):
    study = build(labeled=labeled)
    assert study.measures[0].name == measure
    assert {claim.measure for claim in study.claims} == {measure}
    arms = {arm.name for arm in study.arms}
    assert {side.arm for one in study.claims for side in (one.better, one.worse)} <= arms


def test_labels_of_words_are_refused():
    with pytest.raises(SettingsError, match="task"):
        build(task="tag")


@pytest.mark.parametrize("size", ["small", "large"])
def test_all_arms_read_as_much_of_a_text(monkeypatch, tmp_path, size):
    study, lengths = build(size=size, labeled="train.csv"), []
    task = LabeledTask("classify", tmp_path / "train.csv", tmp_path / "dev.csv")
    saved = SimpleNamespace(metrics={"accuracy": 0.5}, metric="accuracy")
    monkeypatch.setattr(Features, "_list_tasks", lambda *_: {LABELED: task})
    monkeypatch.setattr(Features, "_pretrain", lambda *_: {NUM_PARTS: tmp_path})
    monkeypatch.setattr(features, "score_vectors", lambda *_: 0.5)
    monkeypatch.setattr(features, "freeze", lambda *words: lengths.append(words[2]))
    monkeypatch.setattr(downstream, "finetune", lambda *words: lengths.append(words[2].max_length))
    monkeypatch.setattr(pretraining, "score_bilstm", lambda *_: 0.5)  # reads as the task does
    monkeypatch.setattr(downstream.SavedFineTuning, "read", lambda output: saved)
    for name in LEARNERS:
        monkeypatch.setitem(LEARNERS, name, lambda learning: lengths.append(learning.max_length))
    decision = Decision({TOKENS: 10, TASKS: "", name_steps("fine-tuned"): 1})
    for arm in study.arms:
        study.run_cell(Cell(arm.name, 0), tmp_path, decision)
    assert len(lengths) == len(study.arms) - 1
    assert set(lengths) == {study.scale.pretraining["max_length"]}


@pytest.mark.parametrize(
    ("tokens", "epochs", "of_each"), [(10, 1, 10), (249, 2, 100), (251, 3, 100), (1_000, 10, 100)]
)
def test_skip_gram_reads_whole_passes_or_a_part(monkeypatch, tokens, epochs, of_each):
    shards = SimpleNamespace(
        manifest=SimpleNamespace(train=SimpleNamespace(tokens=100)), load_tokenizer=lambda: None
    )
    asked, read = [], set()
    monkeypatch.setattr(vector_sources.ShardSet, "open", lambda folder: shards)

    def train(data, output, chosen, drawn_tokens):
        asked.append(chosen)
        read.add(drawn_tokens)

    monkeypatch.setattr(vector_sources, "train_word_vectors", train)
    learning = build_learning(tokens=tokens)
    learn_skip_gram(learning)
    learn_skip_gram(replace(learning, seed=4))
    assert [one.epochs for one in asked] == [epochs, epochs]
    assert [one.seed for one in asked] == [3, 4]
    assert asked[0].vector_size == 16
    assert read == {of_each}


def build_learning(**changes) -> Learning:
    learning = Learning(
        data=Path("shards"),
        output=Path("out"),
        tokens=10_000,
        tokens_per_step=980,
        num_features=16,
        max_length=32,
        seed=3,
        device="cpu",
    )
    return replace(learning, **changes)


@pytest.mark.parametrize(("tokens_per_step", "batch_size"), [(980, 14), (3_900, 56), (1, 1)])
def test_skip_thought_takes_as_many_tokens_a_step_as_the_encoder(
    monkeypatch, tokens_per_step, batch_size
):
    counts = SimpleNamespace(tokens=2_200, sentences=100)  # 3 × 22 + 4 tokens of an example
    shards = SimpleNamespace(manifest=SimpleNamespace(train=counts), load_tokenizer=lambda: None)
    monkeypatch.setattr(vector_sources.ShardSet, "open", lambda folder: shards)
    asked = []

    def train(data, output, settings):
        asked.append(settings)
        return SimpleNamespace(checkpoint=output)

    monkeypatch.setattr(vector_sources, "train_skip_thought", train)
    monkeypatch.setattr(vector_sources.SkipThought, "from_pretrained", lambda folder: None)
    learn_skip_thought(build_learning(tokens_per_step=tokens_per_step))
    assert [(one.batch_size, one.tokens, one.seed) for one in asked] == [(batch_size, 10_000, 3)]


@pytest.mark.parametrize("size", ["small", "large"])
def test_the_encoder_isnt_taught_what_pairs_ask(size):
    study = build(size=size)
    assert {study.choose(arm, 0).objective for arm in study.arms} == {"mlm"}


def test_gensim_is_asked_for_before_anything_is_trained(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    monkeypatch.setattr(PretrainingStudy, "decide", lambda study: Decision())
    for only in ((), (SKIP_GRAM, LAST_LAYER)):
        with pytest.raises(MissingExtraError, match="pip install gensim"):
            build(only=only).decide()
    assert build(only=(LAST_LAYER,)).decide() == Decision()
