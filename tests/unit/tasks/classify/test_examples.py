"""Records as texts with labels, and what follows from all of them."""

import pytest
from tests.unit.tasks.small import record_of, table_of

from bertkit.base.errors import InputError
from bertkit.data.tables.record import BrokenRowError
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


def test_a_record_becomes_an_example():
    table = table_of("sentence1", "sentence2", "label")
    record = record_of(sentence1="a", sentence2="b", label=1)
    parse = ClassifyExample.build_parser(ONE, table, needs_answer=True)
    assert parse(record) == ClassifyExample(Texts("a", "b"), ("1",), "t.csv, line 2")
    without = ClassifyExample.build_parser(
        ONE, table_of("sentence1", "sentence2"), needs_answer=False
    )
    assert without(record).labels is None
    with pytest.raises(InputError, match="no column for the label"):
        ClassifyExample.build_parser(ONE, table_of("text"), needs_answer=True)


def test_several_labels_of_a_cell():
    parse = ClassifyExample.build_parser(MANY, table_of("text", "labels"), needs_answer=True)
    assert parse(record_of(text="a", labels="x | y")).labels == ("x", "y")
    assert parse(record_of(text="a", labels="")).labels == ()


@pytest.mark.parametrize("settings", [ONE, MANY])
def test_a_label_that_is_not_listed_is_a_broken_row(settings):
    settings = settings.model_copy(update={"labels": "x,y"})
    parse = ClassifyExample.build_parser(settings, table_of("text", "label"), needs_answer=True)
    assert parse(record_of(text="a", label="y")).labels == ("y",)
    with pytest.raises(
        BrokenRowError, match=r"has the label 'z', which isn't among labels \(x,y\)"
    ):
        parse(record_of(text="a", label="z"))


def test_whole_numbers_with_decimals_are_listed_labels():
    settings = ClassifySettings(labels="1.0, 0.0", positive_label="1.0")
    assert (settings.label_names, settings.positive_label) == (("1", "0"), "1")
    parse = ClassifyExample.build_parser(settings, table_of("text", "label"), needs_answer=True)
    assert [parse(record_of(text="a", label=one)).labels for one in ("0", 1.0)] == [("0",), ("1",)]


def test_labels_are_in_order():
    assert find_labels(ONE, examples_of("b", "a", "b")) == ("a", "b")
    assert find_labels(ONE, examples_of("10", "9", "2")) == ("2", "9", "10")
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
        (F1, ["1", "0", "2"], "f1 needs one label: set positive_label, or"),
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
    assert weigh_labels(balanced, ("a", "b", "c"), examples) == pytest.approx((2 / 3, 2.0, 1.0))
    assert weigh_labels(ONE, ("a", "b"), examples) == ()
    several = MANY.model_copy(update={"class_weights": "balanced"})
    examples = examples_of(("a", "b"), ("a",), ("a",), ("a", "b"), ("a",))
    assert weigh_labels(several, ("a", "b", "c"), examples) == (1.0, 1.5, 1.0)


def test_pairs_and_texts_without_a_label_are_told():
    pair = ClassifyExample(Texts("a", "b"), ())
    assert list_warnings([pair]) == ["they are pairs of texts", "1 of 1 texts without any label"]
    assert list_warnings(examples_of("a")) == []
