"""Encoders are trained, resumed and written by the recipe of every task."""

import csv
import random
import shutil

import numpy as np
import pytest
import torch
from tests.closeness import assert_close
from tests.unit.recipes.finetune.small import QUICK, open_job
from tests.unit.recipes.stopping import read_files, read_rows, stop_at

import bertkit
from bertkit.base.errors import InputError, SettingsError, StoppedError
from bertkit.checkpoints.sentence_modules import Dense, Normalize, Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel, write_sentence_model
from bertkit.checkpoints.torch_tensors import lazy_tensor, read_tensor
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.models.open_model import OpenModel
from bertkit.recipes.finetune import embed_job
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.tasks.embed import EmbeddingSettings

TASK = EmbeddingSettings(max_length=12)
FILLERS = ("the", "a", "saw", "lost")


def write_pairs(path, number, *columns, seed=0):
    """Queries and passages that share a word, or two texts whose score says so."""
    choose = random.Random(seed)
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(columns)
        for _ in range(number):
            word, other = choose.sample(("cat", "dog", "hat"), 2)
            one, same, wrong = (
                " ".join(choose.sample([*choose.choices(FILLERS, k=4), each], 5))
                for each in (word, word, other)
            )
            is_same = choose.random() < 0.5
            last = [5 * is_same + choose.random()] if "score" in columns else []
            rows = [one, same if is_same or not last else wrong, *last]
            table.writerow([*rows, wrong][: len(columns)])
    return path


@pytest.fixture
def pairs(made, tmp_path):
    train = write_pairs(tmp_path / "train.csv", 48, "query", "passage", "negative")
    return Sources("embed", str(made / "model"), str(train))


@pytest.fixture
def scored(made, tmp_path):
    train = write_pairs(tmp_path / "train.csv", 48, "text1", "text2", "score")
    return Sources("embed", str(made / "model"), str(train))


def test_it_learns_which_passage_belongs_to_a_query(pairs, tmp_path):
    result = finetune(pairs, tmp_path / "model", TASK, QUICK.model_copy(update={"held_out": 0.25}))
    before, *_, after = (row for row in read_rows(tmp_path / "model") if row["event"] == "eval")
    assert after["loss"] < before["loss"]
    assert result.saved.metric == "ndcg@10"
    assert result.saved.metrics["ndcg@10"] >= before["ndcg@10"]
    vectors = Embedder.load(tmp_path / "model", engine="torch")(["the cat saw", "a cat", "a dog"])
    assert vectors.shape == (3, 32)


def test_a_stopped_run_is_resumed_bit_for_bit(pairs, tmp_path, monkeypatch):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    settings = QUICK.model_copy(update={"epochs": 2.0, "dropout": 0.1})
    finetune(pairs, whole, TASK, settings)
    with monkeypatch.context() as patch:
        stop_at(7, patch)
        with pytest.raises(StoppedError):
            finetune(pairs, stopped, TASK, settings)
    finetune(pairs, stopped, TASK, settings)
    written, resumed = read_files(whole), read_files(stopped)
    assert {*written} == {*resumed}
    assert written["model.safetensors"] == resumed["model.safetensors"]
    assert written["metrics.json"] == resumed["metrics.json"]


def test_a_query_is_ranked_among_the_passages_of_all_rows(pairs):
    job = open_job(pairs, TASK, QUICK)
    parts = job.data.train.examples, job.data.dev.examples
    passages = {passage for part in parts for one in part for passage in one.passages}
    loss, [first, *_] = job.predict_held_out()
    assert np.isfinite(loss)
    assert first.num_passages == len(passages)
    assert job.relevant[first.query] >= {first.expected}


def test_more_passages_than_are_ranked_are_drawn_by_the_seed_and_said(pairs, monkeypatch, capsys):
    monkeypatch.setattr(embed_job, "MAX_PASSAGES", 30)
    jobs = [open_job(pairs, TASK, QUICK) for _ in range(2)]
    first, second = (list(job.other_passages) for job in jobs)
    assert first == second
    assert jobs[0].predict_held_out()[1][0].num_passages == 30
    assert "held-out queries rank 30 of the" in capsys.readouterr().err


def test_a_step_is_one_batch_without_a_passage_of_another_query(pairs):
    job = open_job(pairs, TASK, QUICK.model_copy(update={"accumulate": 2}))
    assert len(job.batches_at(0)) == 1
    rows = [job.data.train.examples[number] for number in job.examples_at(0)]
    assert len({one.query for one in rows}) == len({one.passages[0] for one in rows}) == 8


def test_held_out_rows_share_no_text_with_training_rows(made, tmp_path):
    rows = [f"a q{n % 9},the p{n % 7}" for n in range(0, 60, 11)] + ["cat,hat", "cat,dog", "v,w"]
    path = tmp_path / "train.csv"
    path.write_text("\n".join(["query,passage", *rows]))
    job = open_job(Sources("embed", str(made / "model"), str(path)), TASK, QUICK)
    train, dev = (
        {text for one in part.examples for text in (one.query, *one.passages)}
        for part in job.data.parts
    )
    assert train.isdisjoint(dev)


def test_pairs_with_a_score_are_measured_by_its_rank(scored, tmp_path):
    result = finetune(scored, tmp_path / "model", TASK, QUICK)
    assert result.saved.metric == "spearman"
    assert set(result.saved.metrics) == {"spearman", "pearson"}


def test_the_folder_says_what_the_model_was_trained_with(pairs, tmp_path):
    prompts = {"query": "the ", "document": "a "}
    task = EmbeddingSettings(max_length=10, prompts=prompts)
    finetune(pairs, tmp_path / "model", task, QUICK.model_copy(update={"epochs": 0.1}))
    again = Sources("embed", str(tmp_path / "model"), pairs.train)
    job = open_job(again, EmbeddingSettings(), QUICK)
    assert job.task.sentences.prompts == prompts
    assert job.task.settings.max_length == 10
    card = (tmp_path / "model" / "README.md").read_text()
    assert "library_name: sentence-transformers" in card
    assert "SentenceTransformer(…).encode(texts)` gives its vectors" in card


def test_modules_of_the_start_are_trained_and_stay(made, tmp_path, pairs):
    start = save_sentence_encoder(tmp_path / "start", made / "model")
    sources = Sources("embed", str(start), pairs.train)
    by_loss = EmbeddingSettings(max_length=12, metric="loss")
    result = finetune(sources, tmp_path / "model", by_loss, QUICK)
    assert result.saved.best_step > 0
    before, after = (OpenModel.open(path).sentences.modules for path in (start, result.output))
    assert [type(module) for module in after] == [type(module) for module in before]
    assert before[0] == after[0]
    assert after[1].activation == "tanh"
    assert not torch.equal(read_tensor(before[1].weight), read_tensor(after[1].weight))


def save_sentence_encoder(folder, model):
    """A folder with two poolings, a dense layer and normalization."""
    shutil.copytree(model, folder)
    weight = torch.randn(6, 64, generator=torch.Generator().manual_seed(0)) / 4
    dense = Dense(lazy_tensor(weight), lazy_tensor(torch.zeros(6)), "tanh")
    modules = (Pooling(32, ("mean", "max")), dense, Normalize())
    write_sentence_model(folder, SentenceModel(modules, 20, similarity="dot"))
    return folder


def test_vectors_of_the_folder_are_those_of_the_trained_model(pairs, tmp_path):
    job = open_job(pairs, TASK, QUICK)
    job.save_model(tmp_path / "model")
    logits = job.held_out_logits(range(3))
    texts = [one.query for one in job.data.dev.examples[:3]]
    found = Embedder.load(tmp_path / "model", engine="torch", precision="fp32")(texts)
    assert_close(found, np.stack([own[0] for own in logits]), "float32")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["query", "a", "b"], "no column of passages"),
        (["query,passage", *["a,a"] * 9], "the same text as query and as passage"),
        (["query,passage", *["a,"] * 9], "has an empty text in passage"),
        (["text1,text2,score", *["a,b,3"] * 9], "all pairs have the score 3"),
        (["text1,text2,score", *["a,b,high"] * 3, *["a,b,3"] * 5], "'high' in score where a num"),
        (["query,passage", "a,b"], "has 1 example; give held-out ones with --dev"),
        (["query,passage,label", *["a,b,0"] * 9], "has the label 0, and no row of its query has 1"),
    ],
)
def test_what_teaches_nothing_is_a_clear_error(made, tmp_path, lines, message):
    path = tmp_path / "train.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=message):
        finetune(Sources("embed", str(made / "model"), str(path)), tmp_path / "model", TASK, QUICK)
    assert not (tmp_path / "model" / "metrics.json").exists()


def test_no_layer_is_solved(pairs, tmp_path):
    settings = QUICK.model_validate({"features": "last", "device": "cpu"})
    with pytest.raises(SettingsError, match="`features` solves a last linear layer, and a model"):
        finetune(pairs, tmp_path / "model", TASK, settings)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("query", "passage"), "a batch of one has no other passage"),
        (("text1", "text2", "score"), "a batch of one has no other pair to be compared with"),
    ],
)
def test_a_batch_of_one_teaches_nothing(made, tmp_path, columns, message):
    path = write_pairs(tmp_path / "plain.csv", 20, *columns)
    sources = Sources("embed", str(made / "model"), str(path))
    with pytest.raises(SettingsError, match=message):
        finetune(sources, tmp_path / "model", TASK, QUICK.model_copy(update={"batch_size": 1}))


def test_rows_without_scores_do_not_measure_pairs_with_scores(made, tmp_path):
    train = write_pairs(tmp_path / "train.csv", 24, "text1", "text2", "score")
    dev = write_pairs(tmp_path / "dev.csv", 8, "query", "passage")
    sources = Sources("embed", str(made / "model"), str(train), str(dev))
    with pytest.raises(InputError, match="has queries with passages, and the training data have p"):
        finetune(sources, tmp_path / "model", TASK, QUICK)


def test_an_encoder_without_other_layers_cannot_be_frozen(pairs, tmp_path):
    frozen = QUICK.model_copy(update={"freeze": "encoder"})
    with pytest.raises(SettingsError, match="freeze is encoder, and the model has nothing else to"):
        finetune(pairs, tmp_path / "model", TASK, frozen)


def test_from_python_it_is_an_embedder_with_its_metrics(made, tmp_path, capsys):
    rows = [(f"a cat {n}", f"the hat {n}") for n in range(12)]
    embed = bertkit.finetune(
        "embed",
        train=rows,
        model=made / "model",
        output=tmp_path / "model",
        max_length=12,
        epochs=1,
        batch_size=4,
        device="cpu",
    )
    assert embed(["a cat", "a dog"]).shape == (2, 32)
    assert set(embed.metrics) == {"ndcg@10", "mrr@10", "recall@10"}


def test_where_all_rows_share_a_text_a_line_says_so(made, tmp_path, capsys):
    path = tmp_path / "train.csv"
    path.write_text("\n".join(["query,passage", *(f"the cat,a hat {n}" for n in range(12))]))
    open_job(Sources("embed", str(made / "model"), str(path)), TASK, QUICK)
    told = capsys.readouterr().err
    assert "all rows share a text, directly or by others" in told
    assert "1 of 1 held-out rows share a query" in told


def test_a_given_prompt_takes_the_place_of_the_one_that_the_model_has(pairs, tmp_path):
    first = EmbeddingSettings(max_length=12, prompts={"document": "a "})
    open_job(pairs, first, QUICK).save_model(tmp_path / "model")
    again = Sources("embed", str(tmp_path / "model"), pairs.train)
    task = EmbeddingSettings(prompts={"passage": "the "})
    found = open_job(again, task, QUICK).task.sentences.prompts
    assert found == {"document": "the ", "passage": "the ", "query": ""}


def test_held_out_rows_that_repeat_training_rows_are_counted_beside_the_verdict(
    made, tmp_path, capsys
):
    rows = [f"the cat {n} saw,a hat {n}" for n in range(12)]
    train, dev = tmp_path / "train.csv", tmp_path / "dev.csv"
    train.write_text("\n".join(["query,passage", *rows]))
    dev.write_text("\n".join(["query,passage", rows[0].upper(), "a  HAT 1,dog", "lost,the dog"]))
    settings = QUICK.model_copy(update={"epochs": 0.5})
    for path, number in ((dev, "2 of 3"), (train, "12 of 12")):
        sources = Sources("embed", str(made / "model"), str(train), str(path))
        saved = finetune(sources, tmp_path / f"for_{path.stem}", TASK, settings).saved
        line = f"{number} held-out rows share a query or its passage with training rows"
        assert line in capsys.readouterr().err
        assert saved.verdict is not None
        assert any(line in warning for warning in saved.warnings)
    job = open_job(Sources("embed", str(made / "model"), str(train)), TASK, QUICK)
    assert job.data.shared == ""
