"""Texts in the order of a reranker, and sums of words as `bertkit nearest` reads them."""

import json

import pytest
from tests.unit.inference.small_task import save_model

import bertkit
from bertkit.base.errors import InputError
from bertkit.cli.main import main
from bertkit.cli.search import read_sum
from bertkit.tasks.rerank import RerankSettings
from bertkit.tasks.rerank.task import Rerank

TEXTS = ["a dog", "the cat saw a hat", "lost", "", "the hat", "a cat lost the dog " * 9]


@pytest.fixture(scope="module")
def reranker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "reranker"
    return save_model(folder, Rerank(RerankSettings(max_length=16)))


def test_texts_of_a_file_are_ordered_and_keep_their_numbers(reranker, tmp_path, capsys):
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(TEXTS))
    assert main(["rerank", reranker, "the cat", str(file), "--json", "--engine", "torch"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    texts = [text for text in TEXTS if text]
    expected = bertkit.rerank("the cat", texts, model=reranker, engine="torch")
    assert found["query"] == "the cat"
    assert [one["text"].strip() for one in found["texts"]] == [one.text.strip() for one in expected]
    assert [one["id"] for one in found["texts"]] == [
        str(1 + TEXTS.index(one.text)) for one in expected
    ]
    assert "5 texts; 1 truncated to 16 tokens" in shown.err
    best = [*main_lines(["rerank", reranker, "the cat", str(file), "--top-k", "2"], capsys)]
    assert [line.split()[1] for line in best] == [one["id"] for one in found["texts"][:2]]


def test_rows_of_a_table_keep_their_ids(reranker, tmp_path, capsys):
    file = tmp_path / "faq.csv"
    file.write_text("number,answer\nx,a dog\ny,the hat\n")
    flags = ["--text-column", "answer", "--id-column", "number"]
    lines = main_lines(["rerank", reranker, "the cat", str(file), *flags], capsys)
    assert {line.split()[1] for line in lines} == {"x", "y"}


def main_lines(words, capsys):
    assert main([*words, "--engine", "torch"]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a query"], "give a file or folder of texts, or - for standard input"),
        (["a query", "{}/no.txt"], "no.txt"),
        (["", "{}/texts.txt"], "the query is empty"),
        (["a query", "{}/empty.txt"], "has no text"),
    ],
)
def test_what_cannot_be_ordered_is_an_error(reranker, tmp_path, capsys, words, message):
    (tmp_path / "texts.txt").write_text("a dog\n")
    (tmp_path / "empty.txt").write_text("\n \n")
    assert main(["rerank", reranker, *(word.format(tmp_path) for word in words)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("expression", "plus", "minus"),
    [
        ("king - man + woman", ["king", "woman"], ["man"]),
        ("king  \u2212  queen", ["king"], ["queen"]),
        ("+ king - New York", ["king"], ["New York"]),
        ("well-known", ["well-known"], []),
        ("-", ["-"], []),
        ("\u2212", ["\u2212"], []),
    ],
)
def test_operators_stand_between_blanks(expression, plus, minus):
    assert read_sum(expression) == (plus, minus)


@pytest.mark.parametrize("expression", ["king - - queen", "king -", "king - + queen"])
def test_an_operator_needs_a_word(expression):
    with pytest.raises(InputError, match="has no word after -"):
        read_sum(expression)


def test_a_number_of_results_below_1_is_refused(tmp_path, capsys):
    assert main(["rerank", str(tmp_path), "the cat", "texts.txt", "--top-k", "0"]) == 2
    assert "top_k must be a whole number of at least 1, got 0" in capsys.readouterr().err
