"""Which loss an encoder of texts is trained with, in how many parts, and what the log counts."""

import csv

import pytest
import torch
from tests.closeness import assert_close
from tests.unit.recipes.finetune.small import QUICK, open_job, save_model

from bertkit.base.errors import SettingsError
from bertkit.recipes.finetune import embed_job
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.tasks.embed import EmbeddingSettings
from bertkit.tasks.embed.losses import cosent_loss, in_batch_loss, matryoshka, number_texts
from bertkit.training.replica import Replica
from bertkit.training.step import take_step

PAIRS = [
    ("query", "passage"),
    ("the cat", "a cat saw the hat"),
    ("a dog", "the dog lost a hat"),
    ("the fox", "a fox"),
    ("a hat", "the hat saw the dog and the fox"),
    ("not the hat", "the hat saw the dog and the fox"),
    ("cats", "dogs saw cats"),
]
SCORED = [
    ("sentence1", "sentence2", "score"),
    *((*pair, number) for number, pair in enumerate(PAIRS[1:])),
]
BATCH = range(6)


@pytest.fixture
def build(tmp_path):
    """A job of a small model on one of the tables."""
    save_model(tmp_path / "model", num_hidden_layers=2)

    def open_small(rows=PAIRS, accumulate=1, **task_settings):
        with (tmp_path / "rows.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows(rows)
        table = str(tmp_path / "rows.csv")
        sources = Sources("embed", str(tmp_path / "model"), table, table)
        settings = QUICK.model_copy(update={"accumulate": accumulate})
        return open_job(sources, EmbeddingSettings(max_length=12, **task_settings), settings)

    return open_small


def find_loss(job):
    """The loss of all rows, and the gradients."""
    job.model.train().zero_grad()
    scores = job.loss(job.model, job.collate(BATCH))
    scores.losses["task"].backward()
    gradients = [each.grad for each in job.model.encoder.parameters()]
    return scores.losses["task"].detach(), gradients


def find_vectors(job):
    batch = job.collate(BATCH)
    return job.model.scores(batch.packed), batch


@pytest.mark.parametrize("rows", [PAIRS, SCORED])
def test_accumulating_changes_the_memory_and_not_the_loss_of_a_batch(build, rows):
    whole, parts = build(rows), build(rows, accumulate=3)
    assert len(parts.batches_at(0)) == len(whole.batches_at(0)) == 1
    assert_close(find_loss(parts), find_loss(whole))


def test_a_large_batch_is_computed_in_parts_by_default(build, monkeypatch):
    taken = []
    compute = embed_job.compute_in_parts

    def note(scores, packed, num_parts):
        taken.append(num_parts)
        return compute(scores, packed, num_parts)

    monkeypatch.setattr(embed_job, "compute_in_parts", note)
    job = build()
    job.loss(job.model, job.collate(BATCH))
    monkeypatch.setattr(embed_job, "count_parts", lambda *_: 4)
    job.loss(job.model, job.collate(BATCH))
    assert taken == [1, 4]


def test_settings_choose_the_loss(build):
    job = build(symmetric=True, false_negative_margin=0.0, loss_temperature=0.2, matryoshka=(8, 16))
    vectors, batch = find_vectors(job)

    def loss(rows):
        ids = number_texts(batch.packed)
        return in_batch_loss(rows, (2,) * 6, ids, 0.2, is_symmetric=True, margin=0.0)

    expected = matryoshka(loss, (8, 16))(vectors)
    found = job.task.loss(vectors, batch)
    assert_close(found.losses["task"], expected.total)
    assert int(found.counts["masked_negatives"]) == int(expected.num_masked) > 0


def test_pairs_with_a_score_are_ordered(build):
    job = build(SCORED)
    vectors, batch = find_vectors(job)
    found = job.task.loss(vectors, batch)
    expected = cosent_loss(vectors, torch.arange(6), 20.0).total
    assert_close(found.losses["task"], expected)
    assert (found.correct, found.counts) == ({}, {})


def test_a_step_logs_how_many_negatives_were_left_out(build):
    job = build()
    metrics = take_step(job, Replica.build(job), 0, 1e-3).metrics
    assert metrics["masked_negatives"] == 2  # two queries have the same passage
    assert set(metrics) == {"loss", "task_loss", "task_accuracy", "gradient_norm"} | {
        "masked_negatives"
    }


def test_several_processes_are_refused_because_each_would_see_a_part_of_the_passages(
    build, tmp_path, monkeypatch
):
    job = build()
    launch = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    for name, value in launch.items():
        monkeypatch.setenv(name, value)
    table = str(tmp_path / "rows.csv")
    sources = Sources("embed", str(tmp_path / "model"), table, table)
    with pytest.raises(SettingsError, match="finetune embed runs in one process, and torchrun"):
        finetune(sources, tmp_path / "output", job.task.settings, QUICK)


def test_a_length_beyond_the_vectors_is_an_error(build):
    job = build(matryoshka=(64,))
    with pytest.raises(SettingsError, match="from 1 to 31"):
        find_loss(job)
