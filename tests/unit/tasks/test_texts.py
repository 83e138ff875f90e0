"""Where texts and pairs stand in a table, and what callers give."""

from dataclasses import replace

import pytest
from tests.unit.tasks.small import record_of, table_of

from bertkit.base.errors import InputError
from bertkit.data.tables.records import RowReport, gather, open_records
from bertkit.tasks.settings import TextSettings
from bertkit.tasks.texts import (
    Texts,
    build_text_parser,
    find_text_columns,
    learn_pairs,
    read_texts,
)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("text", "label"), ("text", None)),
        (("id", "sentence", "label"), ("sentence", None)),
        (("premise", "hypothesis", "label"), ("premise", "hypothesis")),
        (("sentence1", "sentence2", "score"), ("sentence1", "sentence2")),
        (("question1", "question2", "is_duplicate"), ("question1", "question2")),
        (("question", "sentence", "label"), ("question", "sentence")),
        (("question", "label"), ("question", None)),
        (("text", "premise", "hypothesis"), ("text", None)),
        ((), ("text", None)),
    ],
)
def test_usual_names(columns, expected):
    assert find_text_columns(TextSettings(), table_of(*columns)) == expected


def test_what_is_named_is_taken_and_nothing_else_guessed():
    table = table_of("premise", "hypothesis", "body")
    assert find_text_columns(TextSettings(text_column="premise"), table) == ("premise", None)
    assert find_text_columns(TextSettings(pair_column="body"), table) == ("premise", "body")
    with pytest.raises(InputError, match="no column other"):
        find_text_columns(TextSettings(pair_column="other"), table)


def test_a_layout_says_which_is_which():
    table = table_of("#1 String", "#2 String", text="#1 String", pair="#2 String")
    assert find_text_columns(TextSettings(), table) == ("#1 String", "#2 String")
    parse = build_text_parser(TextSettings(), table)
    assert parse(record_of(**{"#1 String": "a", "#2 String": "b"})) == Texts("a", "b")
    single = table_of("sentence", "premise", "hypothesis", text="sentence")
    assert find_text_columns(TextSettings(), single) == ("sentence", None)


def test_a_first_row_without_a_second_text_is_a_broken_row_of_pairs():
    rows = [{"question1": "a"}, *({"question1": "a", "question2": f"b{n}"} for n in range(99))]
    table = open_records(rows)
    report = RowReport(table.name)
    texts = gather(table, build_text_parser(TextSettings(), table), report)
    assert texts == [Texts("a", f"b{n}") for n in range(99)]
    assert report.summary_lines()[1] == "  train, row 1 has no question2"


def test_what_callers_give():
    assert read_texts("a", "here", TextSettings()) == Texts("a")
    assert read_texts(("a", "b"), "here", TextSettings()).show() == "a ||| b"
    for value in (("a",), ("a", 1), 1, None, ["a", "b"]):
        with pytest.raises(InputError, match="here: expected a text or a tuple of two"):
            read_texts(value, "here", TextSettings())


def test_a_model_of_pairs_asks_for_both():
    settings = learn_pairs(TextSettings(), [Texts("a", "b")])
    assert settings.pairs
    assert learn_pairs(TextSettings(), [Texts("a")]) == TextSettings()
    assert read_texts(("a", "b"), "here", settings) == Texts("a", "b")
    with pytest.raises(InputError, match="here: the model reads pairs; give a tuple of two"):
        read_texts("a", "here", settings)
    pairs, single = table_of("premise", "hypothesis"), table_of("text", "label")
    parse = build_text_parser(settings, pairs)
    assert parse(record_of(premise="a", hypothesis="b")) == Texts("a", "b")
    for table in (single, replace(table_of("text"), format="text")):
        with pytest.raises(InputError, match="has one text a row where pairs are read; name"):
            build_text_parser(settings, table)


def test_a_text_a_line_is_read_whatever_the_column_was_called_in_training():
    lines = replace(table_of("text"), format="text")
    assert find_text_columns(TextSettings(text_column="body"), lines) == ("text", None)
    with pytest.raises(InputError, match="has no column premise"):
        find_text_columns(TextSettings(text_column="premise", pair_column="hypothesis"), lines)
