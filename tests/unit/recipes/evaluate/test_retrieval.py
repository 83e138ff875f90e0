"""Evaluations by retrieval."""

import json

import pytest
from tests.closeness import close
from tests.unit.inference.small import save_small
from tests.unit.inference.small_task import save_classifier

import bertkit
from bertkit.base.errors import InputError, SettingsError
from bertkit.base.output import list_names
from bertkit.cli.main import main

TEXTS = {"a": "the cat saw", "b": "a dog lost the hat", "c": "the cat saw", "d": "zebra the"}
QUERIES = {"1": "the cat saw", "2": "a dog lost the hat"}
QRELS = [("1", "a", 1), ("2", "b", 2), ("2", "x", 1)]


@pytest.fixture
def files(tmp_path):
    """The three files of a set, in which equal texts have equal scores."""
    for name, texts in (("corpus", TEXTS), ("queries", QUERIES)):
        rows = [json.dumps({"_id": one, "text": text}) for one, text in texts.items()]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    rows = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in QRELS)]
    (tmp_path / "qrels.tsv").write_text("\n".join(rows))
    return tuple(str(tmp_path / name) for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"))


@pytest.fixture
def encoder(tmp_path):
    save_small(tmp_path / "encoder")
    return str(tmp_path / "encoder")


def test_equal_texts_are_ordered_by_descending_id(encoder, files):
    found = bertkit.evaluate(encoder, retrieval=files)
    assert found.predictions[0].passages[:2] == ("c", "a")
    first, second = (
        dict(zip(found.metrics, one.metrics, strict=True)) for one in found.predictions
    )
    assert (first["mrr@10"], second["mrr@10"]) == (0.5, 1.0)
    assert second["recall@100"] == 0.5  # the passage that the corpus lacks isn't found
    assert found.metrics["mrr@10"] == 0.75
    assert found.evaluation.mistakes[0].place == "1"
    assert "lacks: counted as not found" in found.data_problems[0]
    assert any("not in the vocabulary" in line for line in found.data_problems)


def test_the_command_prints_and_writes_it(encoder, files, tmp_path, capsys):
    output = tmp_path / "found"
    assert main(["evaluate", encoder, "--retrieval", *files, "--output", str(output)]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0] == f"{encoder} on {files[2]}: 2 queries on 4 passages"
    assert "  mrr@10        75.0 %" in shown.out
    assert "qrels.tsv: 1 of 3 judgments name a passage that the corpus lacks" in shown.err
    assert list_names(output) == {"answers.jsonl", "metrics.json", "report.html"}
    answers = (output / "answers.jsonl").read_text().splitlines()
    assert json.loads(answers[0])["found"][0]["id"] == "c"
    metrics = json.loads((output / "metrics.json").read_text())
    assert metrics["data"]["num_passages"] == 4
    assert metrics["data"]["corpus"]["name"] == "corpus.jsonl"
    assert main(["evaluate", encoder, "--retrieval", *files, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == metrics


def test_the_prompts_of_queries_and_passages_are_used(encoder, files, tmp_path):
    asked = bertkit.Embedder.load(encoder)
    asked.prompts.update(query="dog ", document="hat ")
    found = bertkit.evaluate(asked, retrieval=files).predictions[1]
    plain = bertkit.evaluate(encoder, retrieval=files).predictions[1]
    assert plain.scores[0] == close(1.0, "float32")
    assert found.scores[0] < 0.9999


def test_what_is_refused(encoder, files, tmp_path, capsys):
    classifier = save_classifier(tmp_path / "labels")
    with pytest.raises(InputError, match="was fine-tuned to classify; make one with"):
        bertkit.evaluate(classifier, retrieval=files)
    with pytest.raises(InputError, match="takes an encoder, which gives texts vectors, and"):
        bertkit.evaluate(bertkit.Classifier.load(classifier), retrieval=files)
    for wrong in ({}, {"data": [], "retrieval": files}):
        with pytest.raises(SettingsError, match="give labeled data, or the three files"):
            bertkit.evaluate(encoder, **wrong)
    for words in ([], ["rows.csv", "--retrieval", *files]):
        assert main(["evaluate", encoder, *words]) == 2
        assert "give labeled data, or the three files" in capsys.readouterr().err
    with pytest.raises(SettingsError, match="leave out those of labeled data"):
        bertkit.evaluate(encoder, retrieval=files, text_column="x")


def test_empty_and_truncated_texts_are_both_counted(encoder):
    corpus = [{"id": "a", "text": ""}, {"id": "b", "text": "the cat " * 30}]
    rows = [{"id": "1", "text": "the"}], [{"query-id": "1", "corpus-id": "b", "score": 1}]
    problems = bertkit.evaluate(encoder, retrieval=(corpus, *rows)).data_problems
    assert problems == [
        "passages: 1 of 2 texts without text, kept",
        "passages: 1 of 2 texts longer than 24 tokens, truncated",
    ]
