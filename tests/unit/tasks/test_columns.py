"""Cells as labels, whatever the file's format."""

import math
from dataclasses import replace

import pytest
from tests.unit.tasks.small import record_of, table_of

from bertkit.base.errors import InputError
from bertkit.data.tables.record import BrokenRowError, NoLabelError
from bertkit.tasks.choose.examples import read_answer
from bertkit.tasks.columns import (
    MAX_LABEL_CHARS,
    find_column,
    name_labels,
    sort_labels,
    take_label,
    take_labels,
)
from bertkit.tasks.regress.task import take_number


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (" x ", "x"),
        (3, "3"),
        (True, "true"),
        (False, "false"),
        ("True", "True"),
        *((whole, "-4") for whole in (-4, -4.0, "-4", " -4.0 ", "-4.000")),
        *((half, "2.5") for half in (2.5, "2.5")),
        ("-0.0", "0"),
        ("1.10", "1.10"),  # a version, and another one than 1.1
        ("007.0", "007.0"),
        ("{a}", "{a}"),
    ],
)
def test_what_can_be_a_label(value, label):
    assert take_label(record_of(y=value), "y") == label


@pytest.mark.parametrize("value", [math.nan, math.inf, {}])
def test_what_cannot(value):
    with pytest.raises(BrokenRowError, match=r"t\.csv, line 2 has no label in y"):
        take_label(record_of(y=value), "y")


@pytest.mark.parametrize("value", [["x"], "['x', 'y']", '["x"]', "{'x'}"])
def test_a_list_where_one_label_should_be_is_told_with_the_flag_that_reads_it(value):
    with pytest.raises(BrokenRowError, match=r"has the list .* in y where .*; --multi-label reads"):
        take_label(record_of(y=value), "y")


def test_labels_are_sorted_by_value_if_all_are_numbers():
    assert sort_labels({"10", "-2", "0", "2", "-10", "-1"}) == ("-10", "-2", "-1", "0", "2", "10")
    assert sort_labels({"1", "0.5", "-1.5"}) == ("-1.5", "0.5", "1")
    assert sort_labels({"+1", "-1", "+2"}) == ("-1", "+1", "+2")
    assert sort_labels({"10", "9", "x"}) == ("10", "9", "x")


@pytest.mark.parametrize(
    "take",
    [
        take_label,
        take_number,
        lambda record, column: take_labels(record, column, ","),
        lambda record, column: read_answer(record, column, ("a", "b")),
    ],
)
def test_null_is_no_label(take):
    with pytest.raises(NoLabelError, match=r"t\.csv, line 2 has null in y"):
        take(record_of(y=None), "y")


def test_a_label_must_be_there():
    with pytest.raises(BrokenRowError, match="has an empty label in y"):
        take_label(record_of(y=" "), "y")
    with pytest.raises(BrokenRowError, match="has no y"):
        take_label(record_of(x="a"), "y")


@pytest.mark.parametrize(
    ("value", "labels"),
    [
        ("a; b ;a", ("a", "b", "a")),
        ("", ()),
        (" ; ", ()),
        (["b", "a", "b"], ("b", "a", "b")),
        ([1, 2.0], ("1", "2")),
        ([], ()),
        ("['c', 'a']", ("c", "a")),
        ("['c' 'a'\n 'b']", ("c", "a", "b")),  # an array of NumPy
        (""" ['it\\'s', "d; e", 'f\\xa0g',] """, ("it's", "d; e", "f\xa0g")),
        ('["c", "\\u00e4", true]', ("c", "ä", "true")),
        ("[3, -1.0, 2.]", ("3", "-1", "2")),
        ("[]", ()),
        ("[c]", ("[c]",)),
        ("[c];[d]", ("[c]", "[d]")),
    ],
)
def test_several_labels(value, labels):
    assert take_labels(record_of(y=value), "y", ";") == labels


def test_a_label_as_long_as_a_text_is_refused_with_the_place_and_the_way():
    longest = "x" * MAX_LABEL_CHARS
    assert take_label(record_of(y=longest), "y") == longest
    assert take_labels(record_of(y=[longest]), "y", ",") == (longest,)
    words = r"t\.csv, line 2 has 1,001 characters in y, and a label .* 1,000; .*--label-column$"
    with pytest.raises(BrokenRowError, match=words):
        take_label(record_of(y=longest + "x"), "y")
    with pytest.raises(BrokenRowError, match=words):
        take_labels(record_of(y=["a", longest + "x"]), "y", ",")


def test_labels_are_named_in_a_line():
    assert name_labels(["a\nb", "c\u202ed"]) == "a b, c�d"
    assert len(name_labels(["x" * 200_000] * 50_000)) < 500
    assert name_labels([str(number) for number in range(12)]).endswith(", 9 and 2 more")


@pytest.mark.parametrize("value", [3, {"a": 1}, ["a", None], ["a", ["b"]]])
def test_what_is_no_list_of_labels(value):
    with pytest.raises(BrokenRowError, match="a list of labels, or labels with ';' between"):
        take_labels(record_of(y=value), "y", ";")


@pytest.mark.parametrize(
    "cell",
    [
        "['a'; 'b']",
        "['a', 'b'",
        "['a', None]",
        "['a''b']",
        "[['a'], ['b']]",
        "[a; b]",
        "('a', 'b')",
        "{'a'}",
        "[np.str_('a')]",
        '["\\ud800"]',
        "['\\q']",
        "[" * 100_000 + "]" * 100_000,
        "['a'" + " " * 100_000 + "x]",
    ],
)
def test_a_list_that_cannot_be_read_never_becomes_labels_with_brackets(cell):
    with pytest.raises(BrokenRowError, match="a list of labels, or labels with ';' between"):
        take_labels(record_of(y=cell), "y", ";")


def test_a_missing_column_is_told_with_those_that_there_are():
    with pytest.raises(InputError, match=r"no column for the label; name.*--label-column: a, b"):
        find_column(table_of("a", "b"), "label", None, ("label",))
    with pytest.raises(InputError, match="has no column y; name one"):
        find_column(table_of("a", "b"), "label", "y")
    with pytest.raises(InputError, match="is plain text, without a column for the label; give a"):
        find_column(replace(table_of("text"), format="text"), "label", None)
    with pytest.raises(InputError, match=r"--label-column: text;label; if .* with --delimiter"):
        find_column(table_of("text;label"), "label", None)
    with pytest.raises(InputError, match="--label-column: none"):
        find_column(table_of(), "label", None)
    assert find_column(table_of(), "label", None, ("label",)) == "label"
    assert find_column(table_of("a", "gold", label="gold"), "label", None) == "gold"
