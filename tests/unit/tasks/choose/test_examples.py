"""Records of several layouts as contexts with choices."""

import pytest
from tests.unit.tasks.small import record_of, table_of

from bertkit.base.errors import InputError
from bertkit.data.tables.record import BrokenRowError
from bertkit.tasks.choose.examples import ChooseExample, build_parser, make_example
from bertkit.tasks.choose.settings import ChooseInputs, ChooseSettings

SWAG = ("sent1", "sent2", "ending0", "ending1", "ending2", "ending3", "label")
ROW = {"sent1": "She opens it.", "sent2": "The box", **{f"ending{i}": f"e{i}" for i in range(4)}}


def parse(values, *, settings=ChooseSettings(), needs_answer=True):  # noqa: B008
    parser = build_parser(settings, table_of(*values), needs_answer=needs_answer)
    return parser(record_of(**values))


def test_swag():
    found = parse({**ROW, "label": "2"})
    assert found == ChooseExample(
        "She opens it.", ("e0", "e1", "e2", "e3"), "The box", 2, "t.csv, line 2"
    )
    assert found.join("is empty.") == "The box is empty."
    assert ChooseExample("a", ("b", "c")).join("b") == "b"


def test_empty_endings_behind_the_last_are_not_there():
    found = parse({**ROW, "ending2": "", "ending3": None, "label": 1})
    assert found.choices == ("e0", "e1")
    with pytest.raises(BrokenRowError, match="where a list of texts should be"):
        parse({**ROW, "ending1": None, "label": 0})


def test_ten_columns_stand_in_the_order_of_their_numbers():
    values = {"context": "c", **{f"option{number}": str(number) for number in range(1, 12)}}
    found = parse({**values, "label": "11", "option": "no choice"})
    assert found.choices == tuple(map(str, range(1, 12)))
    assert found.label == 10  # no number from 0 to 10, so it is the choice "11"


@pytest.mark.parametrize(
    ("label", "number"), [(1, 1), ("1", 1), (1.0, 1), ("two", 1), (" two ", 1), ("5", 2)]
)
def test_a_label_is_a_number_or_a_choice(label, number):
    assert parse({"context": "c", "choices": ["one", "two ", "5"], "label": label}).label == number


@pytest.mark.parametrize("label", [None, True, 3, -1, 0.5, "x", "same", "", "9" * 5000, ["one"]])
def test_another_label_is_a_broken_row(label):
    with pytest.raises(BrokenRowError, match="where a number from 0 to 2, or one of the choices"):
        parse({"context": "c", "choices": ["one", "same", "same"], "label": label})


@pytest.mark.parametrize("choices", ["one", None, ["one", 2], {"a": "b"}])
def test_choices_are_a_list_of_texts(choices):
    with pytest.raises(BrokenRowError, match="in choices where a list of texts should be"):
        parse({"context": "c", "choices": choices, "label": 0})


@pytest.mark.parametrize("number", [0, 1, 65])
def test_too_few_or_too_many_choices(number):
    with pytest.raises(BrokenRowError, match=f"from 2 to 64 choices, not {number}"):
        parse({"context": "c", "choices": ["x"] * number, "label": 0})
    with pytest.raises(InputError, match=f"here: there must be from 2 to 64 choices, not {number}"):
        make_example(("c", ["x"] * number), "here")


def test_columns_may_have_other_names():
    settings = ChooseSettings(
        context_column="story", question_column="ask", choices_column="end", label_column="gold"
    )
    values = {"story": "s", "ask": "q", "end1": "a", "end2": "b", "gold": "b"}
    assert parse(values, settings=settings) == ChooseExample(
        "s", ("a", "b"), "q", 1, "t.csv, line 2"
    )
    listed = {"story": "s", "ask": "q", "end": ["a", "b"], "gold": "a"}
    assert parse(listed, settings=settings).label == 0
    with pytest.raises(InputError, match="has no column ask"):
        parse({"story": "s", "end": [], "gold": 1}, settings=settings)


def test_missing_columns_are_told():
    with pytest.raises(InputError, match=r"no column for the choices; name one.*: context, label"):
        parse({"context": "c", "label": 0})
    with pytest.raises(InputError, match="no column for the label"):
        parse({"context": "c", "choices": ["a", "b"]})
    found = parse({"context": "c", "choices": ["a", "b"]}, needs_answer=False)
    assert found.label is None


def test_what_callers_give():
    assert make_example(("c", ["a", "b"]), "here") == ChooseExample("c", ("a", "b"), place="here")
    mapping = {"context": "c", "choices": ("a", "b"), "question": "q"}
    assert make_example(mapping, "here").question == "q"
    for value in ("c", ("c",), ("c", "ab"), ("c", ["a", 1]), (1, ["a", "b"]), {"context": "c"}):
        with pytest.raises(InputError, match="here: expected a tuple of context and a list"):
            make_example(value, "here")
    with pytest.raises(InputError, match="here: expected a tuple"):
        make_example({**mapping, "question": 3}, "here")


def test_the_command_gives_each_context_the_choices():
    inputs = ChooseInputs(choice=("a", "b"), question="q")
    assert [make_example(each, "x") for each in inputs.gather(["c", "d"])] == [
        ChooseExample("c", ("a", "b"), "q", place="x"),
        ChooseExample("d", ("a", "b"), "q", place="x"),
    ]
    assert ChooseInputs().gather([]) == []
    for choice in (None, ("a",)):
        with pytest.raises(InputError, match="at least two choices, each with --choice"):
            ChooseInputs(choice=choice).gather(["c"])
