"""Records as texts with labels, and what follows from all of them."""

import math

import pytest
from tests.closeness import close
from tests.unit.tasks.small import record_of, table_of

from bertkit.base.errors import InputError
from bertkit.data.problems import RowReport
from bertkit.data.tables.record import ClassName
from bertkit.data.tables.records import open_records
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.examples import (
    ClassifyExample,
    find_labels,
    list_warnings,
    weigh_labels,
)
from bertkit.tasks.texts import Texts

ONE, MANY = ClassifySettings(), ClassifySettings(multi_label=True, label_separator="|")
F1 = ClassifySettings(metric="f1")


def examples_of(*labels: str | tuple[str, ...]) -> list[ClassifyExample]:
    """A text with each of the labels."""
    return [
        ClassifyExample(Texts("a"), (each,) if isinstance(each, str) else each) for each in labels
    ]


def settle(values, settings=ONE, known=()):
    """Read a column as one file: the labels of the rows that are kept, and the report."""
    parse = ClassifyExample.build_parser(settings, table_of("text", "label"), needs_answer=True)
    examples = [parse(record_of(text="a", label=value)) for value in values]
    report = RowReport("t.csv", num_rows=len(examples))
    found = ClassifyExample.settle(examples, report, settings, known)
    return [example.labels for example in found], report


@pytest.mark.parametrize("settings", [ONE, MANY])
def test_a_label_that_is_not_listed_is_a_broken_row(settings):
    labels, report = settle(["y", "z"], settings.model_copy(update={"labels": "x,y"}))
    assert labels == [("y",)]
    (message,) = report.first_broken
    assert "has the label 'z', which isn't among labels (x,y)" in message


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ("- yes no no", {"-"}),
        ("- + 0 -", set()),
        ("- spam spam", set()),
        ("-1 0 1 2", {"-1"}),
        ("-1 yes no", {"-1"}),
        ("-1 1 -1", set()),
        ("-1 0 1", set()),
        ("-1 0 +1", set()),
        ("-2 -1 0 1 2", set()),
        ("-1 0.5 2", set()),
        ("-100 0 1 -1 2", {"-100", "-1"}),
        ("-100 0 100", set()),
        ("nan yes no <NA>", {"nan", "<NA>"}),
        ("-1 1 nan", {"nan"}),
        ("- + nan", {"nan"}),
        ("1 nan", set()),
    ],
)
def test_marks_of_no_label_are_left_out_and_counted(values, marks):
    values = values.split()
    labels, report = settle(values)
    assert labels == [(value,) for value in values if value not in marks]
    assert report.num_unlabeled == sum(value in marks for value in values)
    assert report.num_broken == 0
    report.check_share(0.0)


@pytest.mark.parametrize("settings", [{}, {"multi_label": True}])
def test_rows_whose_label_is_null_have_none(settings):
    chosen = ClassifySettings(**settings)
    table = open_records([{"text": "a", "label": label} for label in ("x", None, math.nan, "y")])
    parse = ClassifyExample.build_parser(chosen, table, needs_answer=True)
    assert len(table.read(parse)) == 2
    report = table.report
    assert (report.num_unlabeled, report.num_broken) == (2, 0)
    assert report.summary_lines() == [
        "train: 2 of 4 rows (50.0 %) without a label and left out:",
        "  train, row 2 has null in label",
        "  train, row 3 has null in label",
    ]


def test_a_mark_is_a_label_where_it_is_listed_or_known():
    listed = ClassifySettings(labels="-1,0,1,2")
    assert settle(["-1", "0", "1", "2"], listed)[1].num_unlabeled == 0
    labels, report = settle(["-1", "0", "1"], ClassifySettings(labels="0,1"))
    assert (labels, report.num_unlabeled) == ([("0",), ("1",)], 1)
    assert settle(["-1", "0"], known=("-1", "0", "2"))[1].num_unlabeled == 0
    labels, report = settle(["-1", "-1"], known=("0", "1"))
    with pytest.raises(InputError, match=r"no row has a label: t\.csv, line 2 has the mark '-1'"):
        report.check_share(0.01)


def test_a_mark_that_is_read_as_a_label_is_told():
    (line,) = settle([-1, 0, 1])[1].notes
    advice = "If it marks a missing label, list the real labels: --labels 0,1"
    assert line == f"'-1' is treated as a label. {advice}"
    for values in ([-1, 1], [-2, -1, 0, 1], [0, 1], ["-", "+"]):
        assert settle(values)[1].notes == []
    assert settle([-1, 0, 1], ClassifySettings(labels="-1,0,1"))[1].notes == []


@pytest.mark.parametrize(
    "values",
    [
        [[0, 1, 1], [1, 0, 0], [0, 0, 0]],
        [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
        [[False, True, True], [True, False, False], [False, False, False]],
        ["[0. 1. 1.]", "[1. 0. 0.]", "[0. 0. 0.]"],
        ["0|1|1", "1|0|0", "0|0|0"],
    ],
)
def test_lists_of_flags_are_not_labels(values):
    labels, report = settle(values, MANY)
    assert labels == [("1", "2"), ("0",), ()]
    (line,) = report.notes
    assert line.startswith("each list is read as 3 flags, 1 for a label that the text has; the")
    named = MANY.model_copy(update={"labels": "bad,late,loud"})
    assert settle(values, named)[0] == [("late", "loud"), ("bad",), ()]
    assert settle(values, MANY, known=("bad", "late", "loud"))[0][1] == ("bad",)
    with pytest.raises(InputError, match=r"line 2 has 3 flags, 0 or 1, and there are 2 labels"):
        settle(values, MANY.model_copy(update={"labels": "bad,late"}))


@pytest.mark.parametrize("mark", [";", "|", "/"])
def test_another_separator_of_labels_is_told(mark):
    labels, report = settle([f"x{mark}y", "x", f"y{mark} z"], ClassifySettings(multi_label=True))
    assert labels[0] == (f"x{mark}y",)
    (note,) = report.notes
    assert note.endswith(
        f"but some contain {mark!r}; to split them, use --label-separator {mark!r}"
    )
    for values in (
        ["a/b", "c", "d/e"],
        [["x/y", "x"], ["y"]],
        ["x", "y"],
        [["x/y"], ["x"], '["y"]'],
    ):
        assert settle(values, ClassifySettings(multi_label=True))[1].notes == []


def test_flags_may_be_unknown():
    labels, report = settle([[0, 1], [-1, -1], [1, 1]], MANY)
    assert (labels, report.num_unlabeled) == ([("1",), ("0", "1")], 1)
    (place,) = report.places["unlabeled"]
    assert place.endswith("line 2: the flags mark the labels as missing (-1)")


def test_other_lists_of_numbers_are_labels():
    assert settle([[0, 1], [1], [0]], MANY)[0] == [("0", "1"), ("1",), ("0",)]
    assert settle([[0, 2], [1, 1]], MANY)[0] == [("0", "2"), ("1",)]
    assert settle([[1, 0]], MANY, known=("0", "1", "2"))[0] == [("1", "0")]
    assert settle([[3, -1], [2, 5], [-1, -1]], MANY)[0] == [("3",), ("2", "5")]


def test_whole_numbers_with_decimals_are_listed_labels():
    settings = ClassifySettings(labels="1.0, 0.0", positive_label="1.0")
    assert (settings.label_names, settings.positive_label) == (("1", "0"), "1")
    parse = ClassifyExample.build_parser(settings, table_of("text", "label"), needs_answer=True)
    assert [parse(record_of(text="a", label=one)).labels for one in ("0", 1.0)] == [("0",), ("1",)]


def test_labels_are_in_order():
    assert find_labels(ONE, examples_of("2", "-2", "1", "0", "-1")) == ("-2", "-1", "0", "1", "2")
    assert find_labels(ONE, examples_of("1" * 5000, "2")) == ("1" * 5000, "2")
    listed = ClassifySettings(labels="b,c,a")
    assert find_labels(listed, examples_of("a", "b")) == ("b", "c", "a")
    assert find_labels(MANY, examples_of(("x",), ())) == ("x",)


@pytest.mark.parametrize(
    ("settings", "labels", "message"),
    [
        (ONE, ["a", "a"], "all examples have the label 'a'; at least two labels are needed"),
        (ONE, [], "no example has a label"),
        (MANY, [(), ()], "no example has a label"),
        (F1, ["1", "0", "2"], "f1 needs one label: list two labels, the positive one last, or"),
        (F1, ["not_equivalent", "equivalent"], "labels are equivalent, not_equivalent"),
        (ClassifySettings(metric="f1", labels="a,b,c"), ["a", "b"], "f1 needs one label"),
        (ClassifySettings(positive_label="z"), ["a", "b"], "no example has the positive_label 'z'"),
    ],
)
def test_what_cannot_be_learned_is_refused(settings, labels, message):
    with pytest.raises(InputError, match=message):
        find_labels(settings, examples_of(*labels))


def test_whose_f1_it_is_may_be_clear():
    assert find_labels(F1, examples_of("+1", "-1")) == ("-1", "+1")
    for labels in (("1", "0"), ("true", "false"), ("NEGATIVE", "POSITIVE"), ("no", "yes")):
        assert find_labels(F1, examples_of(*labels)) == tuple(sorted(labels))
    listed = ClassifySettings(metric="f1", labels="not_equivalent,equivalent")
    assert find_labels(listed, examples_of("equivalent", "not_equivalent"))[1] == "equivalent"
    named = ClassifySettings(metric="f1", positive_label="a")
    assert find_labels(named, examples_of("a", "b", "c")) == ("a", "b", "c")


def test_rare_labels_weigh_more():
    balanced = ClassifySettings(class_weights="balanced", labels="a,b,c")
    examples = examples_of("a", "a", "a", "b")
    assert weigh_labels(balanced, ("a", "b", "c"), examples) == close((2 / 3, 2.0, 1.0))
    assert weigh_labels(ONE, ("a", "b"), examples) == ()
    several = MANY.model_copy(update={"class_weights": "balanced"})
    examples = examples_of(("a", "b"), ("a",), ("a",), ("a", "b"), ("a",))
    assert weigh_labels(several, ("a", "b", "c"), examples) == (1.0, 1.5, 1.0)


def test_texts_with_contradictory_labels_are_told():
    (line,) = list_warnings([*examples_of("a", "b", "a"), ClassifyExample(Texts("c"), ("b",))])
    assert line.startswith("1 row repeats an earlier text with a different label, first at")
    assert list_warnings(examples_of(("a", "b"), ("b", "a"))) == []


def test_pairs_and_texts_without_a_label_are_told():
    pair = ClassifyExample(Texts("a", "b"), ())
    assert list_warnings([pair]) == ["they are pairs of texts", "1 of 1 texts without any label"]
    assert list_warnings(examples_of("a", "a")) == []


def test_flags_are_read_with_the_labels_of_training():
    rows = [[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]]
    found, report = settle(rows, MANY, known=("0", "1", "2"))  # 3 was never set there
    assert found == [("1", "3"), ("0",), ()]
    assert report.notes[0].startswith("each list is read as 4 flags")


@pytest.mark.parametrize("settings", [ONE, MANY])
def test_classes_have_their_names_unless_numbers_are_known(settings):
    values = [ClassName("no|never", 0), ClassName("yes", 1)]
    assert settle(values, settings)[0] == [("no|never",), ("yes",)]
    labels, _ = settle(values, settings, known=("0", "1"))
    assert labels == [("0",), ("1",)]
    assert {type(label) for each in labels for label in each} == {str}
