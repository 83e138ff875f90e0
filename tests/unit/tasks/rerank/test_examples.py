"""Rows of queries and passages become queries with all their candidates."""

import pytest
from tests.unit.tasks.small import record_of, table_of

from bertkit.base.errors import InputError
from bertkit.data.problems import RowReport
from bertkit.tasks.rerank import RerankSettings
from bertkit.tasks.rerank.examples import RerankExample


def read(*rows, needs_answer=True):
    """The examples of rows, and the report."""
    table, report = table_of(*rows[0]), RowReport("t.csv")
    table.look = lambda: [record_of(**row) for row in rows]
    parse = RerankExample.build_parser(RerankSettings(), table, needs_answer=needs_answer)
    examples = [parse(record_of(**row)) for row in rows]
    if needs_answer:
        examples = RerankExample.settle(examples, report, RerankSettings())
    return examples, report


def test_a_passage_is_relevant_and_its_negatives_are_not():
    (found,), report = read({"query": "q", "passage": "p", "negative_1": "n", "negative_2": ""})
    assert (found.query, found.passages, found.relevances) == ("q", ("p", "n"), (1.0, 0.0))
    assert found.positives == ("p",)
    assert found.has_choice
    assert report.notes == []


def test_rows_of_a_query_are_joined():
    rows = [("q", "a", "0"), ("r", "b", "1"), ("q", "b", "2"), ("q", "c", "-1")]
    found, _ = read(*(dict(zip(("query", "passage", "label"), row, strict=True)) for row in rows))
    assert [(one.query, one.passages, one.relevances) for one in found] == [
        ("q", ("a", "b", "c"), (0.0, 2.0, 0.0)),
        ("r", ("b",), (1.0,)),
    ]
    assert [one.has_choice for one in found] == [True, False]
    assert found[0].group == found[1].group  # both are answered by b


def test_queries_that_share_no_relevant_passage_are_held_out_apart():
    rows = [{"query": q, "passage": p, "negatives": ["n"]} for q, p in ("ab", "cd")]
    first, second = read(*rows)[0]
    assert first.group != second.group


def test_a_contradiction_is_said_and_the_highest_relevance_counts():
    rows = [
        {"query": "q", "passage": "p", "negative": "n"},
        {"query": "q", "passage": "n", "negative": "o"},
    ]
    (found,), report = read(*rows)
    assert (found.passages, found.relevances) == (("p", "n", "o"), (1.0, 1.0, 0.0))
    (note,) = report.notes
    assert note.startswith("1 passage of a query more and less relevant in different rows;")


def test_without_answers_a_row_has_one_candidate():
    (found,), _ = read({"query": "q", "passage": "p", "score": "?"}, needs_answer=False)
    assert found == RerankExample("q", ("p",), place="t.csv, line 2")


def test_candidates_of_a_search_keep_what_is_known_of_them():
    example = RerankExample("q", ("p", "n"), (2.0, 0.0), place="here", group="0")
    found = example.with_candidates(("m", "p"), (0.5, 0.25))
    assert (found.passages, found.relevances, found.cosines) == (("m", "p"), (0, 2), (0.5, 0.25))
    assert (found.place, found.group, found.positives) == ("here", "0", ("p",))


@pytest.mark.parametrize("passages", ["p", ["p", "r"], ("p", "r")])
def test_a_caller_gives_one_passage_or_several(passages):
    found = RerankExample.from_value(("q", passages), "here", RerankSettings())
    assert found.passages == (("p",) if passages == "p" else ("p", "r"))
    assert found.num_chars == 2 * len(found.passages)
    assert found.arguments == [("", "q")]


@pytest.mark.parametrize("value", ["q", ("q",), ("q", []), ("q", ["p", 1]), (1, "p"), ("q", 1)])
def test_another_value_is_refused(value):
    with pytest.raises(InputError, match="here: expected a tuple of a query and a passage, or"):
        RerankExample.from_value(value, "here", RerankSettings())
