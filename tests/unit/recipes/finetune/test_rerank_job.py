"""A reranker is trained, resumed to the same bits, saved and used; long lists are cut."""

import json

import numpy as np
import pytest
from tests.unit.recipes.finetune.small import QUICK, open_job, save_model
from tests.unit.recipes.stopping import stop_at

import bertkit
from bertkit.base.errors import InputError, StoppedError
from bertkit.recipes.finetune import rerank_job
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.rerank import RerankSettings

ANIMALS = {"cat": "the cat saw a hat", "dog": "a dog lost", "fox": "the fox"}
TASK = RerankSettings(max_length=12, negatives="file")


def write_rows(path, times=12):
    rows = [
        {
            "query": f"{filler}{animal}",
            "passage": text,
            "negatives": [*({*ANIMALS.values()} - {text})],
        }
        for filler in ("", "a ", "the ", "lost ", "saw ")[:times]
        for animal, text in ANIMALS.items()
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


@pytest.fixture
def sources(tmp_path):
    save_model(tmp_path / "model")
    train = write_rows(tmp_path / "train.jsonl")
    return Sources("rerank", str(tmp_path / "model"), train, train)


def test_it_is_trained_and_used(sources, tmp_path):
    settings = QUICK.model_copy(update={"epochs": 40})
    result = finetune(sources, tmp_path / "out", TASK, settings)
    assert result.saved.metrics["ndcg@10"] > 0.9
    reranker = bertkit.Reranker.load(tmp_path / "out", device="cpu", engine="torch")
    assert reranker.rank("the dog", [*ANIMALS.values()])[0].text == ANIMALS["dog"]
    hits = bertkit.search("dog", [*ANIMALS.values()], rerank=str(tmp_path / "out"))
    assert hits[0].text == ANIMALS["dog"]


def test_a_resumed_run_ends_with_the_same_bits(sources, tmp_path, monkeypatch):
    settings = QUICK.model_copy(update={"epochs": 2, "save_every": 1})
    finetune(sources, tmp_path / "whole", TASK, settings)
    with monkeypatch.context() as patch:
        stop_at(2, patch)
        with pytest.raises(StoppedError):
            finetune(sources, tmp_path / "parts", TASK, settings)
    finetune(sources, tmp_path / "parts", TASK, settings)
    whole, parts = ((tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()


def test_long_lists_are_cut_to_relevant_passages_and_others(sources, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rerank_job, "MAX_PASSAGES", 2)
    job = open_job(sources, TASK, QUICK)
    assert (
        "15 queries with more than 2 passages; so many are trained of each"
        in capsys.readouterr().err
    )
    batch = job.collate([0, 1])
    assert batch.num_sequences == (2, 2)
    assert sorted(batch.labels.tolist()) == [0, 0, 1, 1]
    assert np.array_equal(job.thin(0).labels, job.thin(0).labels)


def test_a_large_step_is_computed_in_parts(sources, monkeypatch):
    assert open_job(sources, TASK, QUICK).num_micro_batches == 1
    monkeypatch.setattr(rerank_job, "PART_TOKENS", 64)
    assert open_job(sources, TASK, QUICK).num_micro_batches > 1
    many = QUICK.model_copy(update={"accumulate": 8})
    monkeypatch.setattr(rerank_job, "PART_TOKENS", 8192)
    assert open_job(sources, TASK, many).num_micro_batches == 8


@pytest.mark.parametrize(("pooling", "rate"), [("cls", 3e-5), ("mean", 1e-4)])
def test_a_sentence_encoder_learns_at_the_rate_of_one(sources, pooling, rate):
    settings = FineTuneSettings(batch_size=8, device="cpu")
    job = open_job(sources, TASK.model_copy(update={"pooling": pooling}), settings)
    assert job.settings.learning_rate == rate


def test_passages_that_are_all_relevant_teach_nothing(sources, tmp_path):
    rows = "\n".join(f"{animal},{text}" for animal, text in ANIMALS.items())
    (tmp_path / "alike.csv").write_text(f"query,passage\n{rows}\n")
    alike = Sources("rerank", sources.model, str(tmp_path / "alike.csv"), sources.dev)
    with pytest.raises(InputError, match="all passages are equally relevant, and nothing can be"):
        open_job(alike, TASK, QUICK)


def test_too_few_passages_to_mine_are_said(sources, tmp_path):
    rows = "\n".join(f"{query},the cat saw a hat" for query in ("cat", "dog", "fox", "hat"))
    (tmp_path / "same.csv").write_text(f"query,passage\n{rows}\n")
    same = Sources("rerank", sources.model, str(tmp_path / "same.csv"), str(tmp_path / "same.csv"))
    task = TASK.model_copy(update={"negatives": "mine"})
    with pytest.raises(InputError, match="too few different ones were found among them to mine"):
        open_job(same, task, QUICK)


def test_held_out_queries_without_a_worse_passage_give_no_verdict(sources, tmp_path, capsys):
    rows = "\n".join(f"{animal},{animal} {animal},1" for animal in ANIMALS)
    (tmp_path / "dev.csv").write_text(f"query,passage,label\n{rows}\n")
    single = Sources("rerank", sources.model, sources.train, str(tmp_path / "dev.csv"))
    assert finetune(single, tmp_path / "out", TASK, QUICK).saved.verdict is None
    assert "3 of the queries have no passage that is more relevant" in capsys.readouterr().err
