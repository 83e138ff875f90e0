"""A student with fewer layers learns the vectors of a teacher."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.closeness import assert_close
from tests.unit.recipes.finetune.small import QUICK, open_job, save_model

from bertkit.base.errors import SettingsError
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.models.bert.sentence_bert import SentenceBert
from bertkit.recipes.finetune.distillation import choose_layers
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.recipes.finetune.seeds import finetune_seeds
from bertkit.tasks.embed import EmbeddingSettings
from bertkit.tasks.embed.losses import squared_error

LEARNED = 0.5  # mean distance of vectors; 2.0 for those that know nothing
PAIRS = [
    ("query", "passage"),
    ("the cat", "a cat saw the hat"),
    ("a dog", "the dog lost a hat"),
    ("the fox", "a fox"),
    ("a hat", "the hat saw the dog and the fox"),
    ("cats", "dogs saw cats"),
]


@pytest.fixture
def sources(tmp_path):
    """A model of four layers, and a table."""
    save_model(tmp_path / "model", num_hidden_layers=4)
    with (tmp_path / "rows.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(PAIRS)
    table = str(tmp_path / "rows.csv")
    return Sources("embed", str(tmp_path / "model"), table, table)


def open_student(sources, teacher, num_layers=2):
    settings = EmbeddingSettings(max_length=12, teacher=str(teacher), num_layers=num_layers)
    return open_job(sources, settings, QUICK)


def test_targets_are_the_vectors_of_the_teacher(sources):
    job = open_student(sources, sources.model)
    batch = job.collate(range(5))
    texts = [text for row in PAIRS[1:] for text in row]
    expected = Embedder.load(sources.model)(texts)
    assert_close(batch.labels, torch.from_numpy(np.asarray(expected)), "float32")
    scores = job.loss(job.model, batch)
    vectors = job.model.scores(batch.packed)
    error = squared_error(vectors, batch.labels) * batch.target_counts["task"]
    assert_close(scores.losses["task"], error)


def test_a_student_has_layers_of_the_model_and_its_folder_says_so(sources, tmp_path):
    parent = SentenceBert.from_pretrained(sources.model)
    job = open_student(sources, sources.model)
    first = parent.encoder.layers[0].feed_forward.up.weight
    last = parent.encoder.layers[3].feed_forward.up.weight
    kept = [layer.feed_forward.up.weight for layer in job.model.encoder.layers]
    assert len(kept) == 2
    assert_close(kept, [first, last])
    job.model.save_pretrained(tmp_path / "saved")
    assert SentenceBert.from_pretrained(tmp_path / "saved").config.num_hidden_layers == 2


def test_a_teacher_of_another_width_adds_a_linear_map(sources, tmp_path, capsys):
    save_model(tmp_path / "teacher", hidden_size=48, num_hidden_layers=1)
    job = open_student(sources, tmp_path / "teacher")
    assert "linear map from 32 to 48" in capsys.readouterr().err
    batch = job.collate(range(5))
    vectors = job.model.scores(batch.packed)
    assert vectors.shape == batch.labels.shape == (10, 48)
    job.model.save_pretrained(tmp_path / "saved")
    again = SentenceBert.from_pretrained(tmp_path / "saved")
    assert_close(again.scores(batch.packed), job.model.eval().scores(batch.packed))


def test_a_run_learns_the_vectors_and_a_student_is_not_cut_again(sources, tmp_path):
    task = EmbeddingSettings(max_length=12, teacher=sources.model, num_layers=2, metric="loss")
    settings = QUICK.model_copy(update={"epochs": 20.0, "batch_size": 5, "checkpoint_every": 5})
    finetune(sources, tmp_path / "output", task, settings)
    texts = [text for row in PAIRS[1:] for text in row]
    expected = Embedder.load(sources.model)(texts)
    found = Embedder.load(tmp_path / "output")(texts)
    assert np.linalg.norm(found - expected, axis=1).mean() < LEARNED
    further = open_student(replace(sources, model=str(tmp_path / "output")), sources.model)
    assert len(further.model.encoder.layers) == 2


@pytest.mark.parametrize(
    ("num_layers", "num_kept", "kept"),
    [(6, 3, [0, 2, 5]), (12, 6, [0, 2, 4, 7, 9, 11]), (4, 4, [0, 1, 2, 3]), (6, 1, [0])],
)
def test_layers_are_evenly_spaced(num_layers, num_kept, kept):
    assert choose_layers(num_layers, num_kept) == kept


def test_more_layers_than_there_are_is_an_error():
    with pytest.raises(SettingsError, match="`num_layers` is 7, and the model has 6 layers"):
        choose_layers(6, 7)


def test_students_of_several_seeds_learn_from_the_teacher(sources, tmp_path):
    settings = EmbeddingSettings(max_length=12, teacher=sources.model, num_layers=1)
    quick = QUICK.model_copy(update={"epochs": 1.0})
    result = finetune_seeds(sources, tmp_path / "student", settings, quick, 2)
    assert result.comparison is not None
    assert len(result.comparison.finite_seeds) == 2


def test_an_adapter_of_some_layers_is_refused(sources):
    task = EmbeddingSettings(max_length=12, num_layers=2)
    with pytest.raises(SettingsError, match="`lora` makes an adapter for all layers"):
        open_job(sources, task, QUICK.model_copy(update={"lora": 2}))


@pytest.mark.parametrize(
    ("name", "value"), [("matryoshka", (4,)), ("symmetric", True), ("negatives", "mine")]
)
def test_what_a_teacher_takes_the_place_of_is_refused(name, value):
    with pytest.raises(ValueError, match=f"from the `teacher` alone: leave out `{name}`"):
        EmbeddingSettings(teacher="another/", **{name: value})
