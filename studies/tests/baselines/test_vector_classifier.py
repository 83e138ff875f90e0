"""Logistic regression on vectors is that of scikit-learn, and reads what fine-tuning reads."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from tests.closeness import assert_close

from bertkit.base.errors import BertkitError
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.texts import Texts
from bertkit_studies.baselines.vector_classifier import (
    describe_texts,
    fit,
    score_vectors,
    standardize,
)
from bertkit_studies.probes.downstream import LabeledTask, TaskTuning

WORDS = ("good", "bad", "odd")


def encode(texts):
    """How often each word is there."""
    rows = [[text.split().count(word) for word in WORDS] for text in texts]
    return np.array(rows, dtype=np.float32).reshape(len(rows), len(WORDS))


def write_rows(path: Path, rows: list[str], columns: str = "text,label") -> Path:
    path.write_text("\n".join([columns, *rows]) + "\n")
    return path


@pytest.mark.parametrize(("num_labels", "strength"), [(2, 1.0), (4, 0.01)])
def test_weights_are_those_of_scikit_learn(num_labels, strength):
    generator = np.random.default_rng(0)
    train, new = (generator.normal(size=(count, 6)) * 3 + 1 for count in (50, 20))
    labels = generator.integers(num_labels, size=50)
    rows, others = standardize(train.astype(np.float32), new.astype(np.float32))
    weights, bias = fit(rows, torch.from_numpy(labels), num_labels, strength)
    scaler = StandardScaler().fit(train.astype(np.float32))
    # Of two labels scikit-learn has one row of weights, their difference, and pulls harder at it.
    theirs = LogisticRegression(C=strength * (2 if num_labels == 2 else 1), tol=1e-10)
    theirs.fit(scaler.transform(train), labels)
    wanted = theirs.predict_proba(scaler.transform(new))
    found = (others @ weights + bias).softmax(dim=1).numpy()
    assert_close(found, wanted, within=1e-4)


def test_a_feature_that_never_changes_tells_nothing():
    rows, others = standardize(np.ones((3, 2), np.float32), np.full((1, 2), 5, np.float32))
    assert not rows.any()
    assert torch.isfinite(others).all()


def test_pairs_are_what_they_differ_in_and_what_they_share():
    pairs = [Texts("good good", "good"), Texts("odd", "bad")]
    found = describe_texts(pairs, encode)
    np.testing.assert_array_equal(found, [[1, 0, 0, 2, 0, 0], [0, 1, 1, 0, 0, 0]])
    np.testing.assert_array_equal(describe_texts([Texts("bad")], encode), [[0, 1, 0]])


def test_what_vectors_tell_is_told_of_the_held_out_examples(tmp_path):
    train = write_rows(tmp_path / "train.csv", ["good,yes", "bad,no", "good odd,yes"] * 4)
    dev = write_rows(tmp_path / "dev.csv", ["good,yes", "bad,no", "bad odd,no", "good,maybe"])
    task = LabeledTask("classify", train, dev)
    assert score_vectors(task, encode, FineTuneSettings()) == 0.75  # maybe is never learned
    assert score_vectors(task, lambda texts: encode(texts) * 0, FineTuneSettings()) == 0.25


def test_a_share_is_held_out_by_the_seed_where_the_task_says_nothing(tmp_path):
    rows = [f"good {number},yes" if number % 2 else f"bad {number},no" for number in range(20)]
    path = write_rows(tmp_path / "train.csv", rows)
    seen: list[list[str]] = []

    def watch(texts):
        seen.append(list(texts))
        return encode(texts)

    for seed in (0, 0, 1):
        assert score_vectors(LabeledTask("classify", path), watch, FineTuneSettings(seed=seed)) == 1
    assert [len(texts) for texts in seen] == [18, 2] * 3
    assert seen[1] == seen[3] != seen[5]
    assert not set(seen[0]) & set(seen[1])


def test_seeds_of_a_study_share_the_held_out_examples(tmp_path):
    rows = [f"good {number},yes" if number % 2 else f"bad {number},no" for number in range(20)]
    task = LabeledTask("classify", write_rows(tmp_path / "train.csv", rows))
    seen: list[list[str]] = []

    def watch(texts):
        seen.append(list(texts))
        return encode(texts)

    tuning = TaskTuning(num_train=20, num_dev=20, learning_rate=1e-3)
    for seed in (1, 2):
        score_vectors(task, watch, tuning.choose(seed, "cpu", {}))
    assert seen[:2] == seen[2:]


def test_examples_of_one_label_are_refused(tmp_path):
    path = write_rows(tmp_path / "train.csv", ["good,yes"] * 20)
    with pytest.raises(BertkitError, match="label"):
        score_vectors(LabeledTask("classify", path), encode, FineTuneSettings())
