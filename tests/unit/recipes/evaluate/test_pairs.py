"""Evaluations of encoders on labeled pairs."""

import json

import numpy as np
import pytest
from tests.closeness import close
from tests.unit.inference.small import save_small
from tests.unit.recipes.finetune.test_mining import ROWS

import bertkit
from bertkit.base.errors import InputError
from bertkit.checkpoints.sentence_modules import Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel, write_sentence_model
from bertkit.cli.main import main
from bertkit.inference.embeddings.settings import SIMILARITIES
from bertkit.inference.embeddings.similarity import compare
from bertkit.recipes.evaluate import pairs

SCORED = [
    {"sentence1": "the cat saw", "sentence2": "the cat saw", "score": 5.0},
    {"sentence1": "a dog lost", "sentence2": "the hat", "score": 1.0},
    {"sentence1": "a dog", "sentence2": "a cat", "score": 3.5},
    {"sentence1": "the", "sentence2": "zebra hat", "score": 0.0},
]
PAIRS = [
    {"query": "the cat saw", "passage": "a cat saw"},
    {"query": "the cat saw", "passage": "the cat lost"},
    {"query": "a hat", "passage": "a hat ."},
]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    save_small(folder)
    pooling = Pooling(dimension=8, modes=("mean",))
    write_sentence_model(folder, SentenceModel((pooling,), max_seq_length=12))
    return folder


def test_scores_are_compared_with_the_cosines_of_both_texts(encoder):
    found = bertkit.evaluate(encoder, SCORED)
    embed = bertkit.Embedder.load(encoder)
    compared = [(one["sentence1"], one["sentence2"]) for one in SCORED[1:]]  # the first are equal
    expected = [float(bertkit.similarity(*texts, model=embed)) for texts in compared]
    assert [one.value for one in found.predictions] == close(expected, "float32")
    assert list(found.metrics) == ["spearman", "pearson"]
    assert found.counted == "3 pairs"
    assert "1 pair of equal texts left out" in " ".join(found.data_problems)
    assert bertkit.evaluate(embed, SCORED).metrics == found.metrics


def test_each_query_ranks_all_passages_of_the_file(encoder):
    found = bertkit.evaluate(encoder, PAIRS)
    assert [one.num_passages for one in found.predictions] == [3, 3]  # a query counts once
    assert found.counted == "2 queries"
    assert list(found.metrics) == ["ndcg@10", "mrr@10", "recall@10"]
    assert found.metrics["recall@10"] == 1.0


def test_the_command(encoder, tmp_path, capsys):
    path = tmp_path / "sts.csv"
    lines = [",".join(map(str, row.values())) for row in SCORED]
    path.write_text("\n".join(["sentence1,sentence2,score", *lines]))
    assert main(["evaluate", str(encoder), str(path), "--output", str(tmp_path / "found")]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0] == f"{encoder} on {path}: 3 pairs"
    assert "  spearman  " in shown.out
    assert "is not in the vocabulary" in shown.err  # zebra
    metrics = json.loads((tmp_path / "found" / "metrics.json").read_text())
    assert metrics["data"]["num_examples"] == 3


def test_a_trained_encoder_is_evaluated_by_its_columns(encoder, tmp_path, capsys):
    rows = [{"ask": query, "reply": passage} for query, passage in ROWS]
    train = {"text_column": "ask", "pair_column": "reply", "epochs": 1, "device": "cpu"}
    bertkit.finetune("embed", train=rows, model=encoder, output=tmp_path / "m", **train)
    path = tmp_path / "test.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert main(["evaluate", str(tmp_path / "m"), str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["recall@10"] <= 1.0


def test_scores_that_are_all_equal_are_refused(encoder):
    with pytest.raises(InputError, match="all pairs have the score"):
        bertkit.evaluate(encoder, [{**row, "score": 3.0} for row in SCORED])


def test_a_query_that_is_a_passage_of_another_row_is_not_found_for_itself(encoder):
    rows = [("the cat", "a cat"), ("a dog saw", "the dog saw")]
    both = [pair for first, second in rows for pair in ((first, second), (second, first))]
    found = bertkit.evaluate(
        encoder, [dict(zip(("query", "passage"), row, strict=True)) for row in both]
    )
    assert all(one.passage != one.query for one in found.predictions)
    assert {one.num_passages for one in found.predictions} == {3}


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_queries_are_ranked_alike_however_many_are_compared_at_once(
    encoder, monkeypatch, similarity
):
    embedder = bertkit.Embedder.load(encoder)
    embedder.similarity = similarity
    rows = [{"query": query, "passage": passage} for query, passage in ROWS]
    found = bertkit.evaluate(embedder, rows).predictions
    monkeypatch.setattr(pairs, "QUERIES_AT_ONCE", 1)
    assert bertkit.evaluate(embedder, rows).predictions == found
    vectors = {text: embedder(text) for row in ROWS for text in row}
    passages = list(dict.fromkeys(passage for _, passage in ROWS))
    for one in found:
        scores = [compare(similarity, vectors[text], vectors[one.query]) for text in passages]
        assert one.passage == passages[int(np.argmax(scores))]
