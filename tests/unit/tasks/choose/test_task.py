"""The task as the recipe and the predictor use it, from texts to a saved model."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.closeness import close
from tests.unit.tasks.small import TOKENIZER, learn, record_of, table_of

from bertkit.base.errors import CheckpointError, InputError
from bertkit.data.problems import RowReport
from bertkit.data.tables.record import BrokenRowError
from bertkit.inference.predictor import Chooser
from bertkit.models.bert.config import BertConfig
from bertkit.reports.text import format_percent
from bertkit.tasks.choose import ChooseInputs, ChooseSettings
from bertkit.tasks.choose.examples import ChooseExample
from bertkit.tasks.choose.task import Choose
from bertkit.tasks.saved import load_task, save_task

SWAG = ("sent1", "sent2", "ending0", "ending1", "ending2", "ending3", "label")
ROW = {"sent1": "She opens it.", "sent2": "The box", **{f"ending{i}": f"e{i}" for i in range(4)}}


def parse(values, *, settings=ChooseSettings(), needs_answer=True):  # noqa: B008
    parser = ChooseExample.build_parser(settings, table_of(*values), needs_answer=needs_answer)
    example = parser(record_of(**values))
    return ChooseExample.settle([example], RowReport(""), settings)[0] if needs_answer else example


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


PRICES = ["2", "3", "1"]


def settle(choices, labels):
    """Read rows with the same choices as one file; return what is learned, and the report."""
    parser = ChooseExample.build_parser(
        ChooseSettings(), table_of("context", "choices", "label"), needs_answer=True
    )
    rows = [{"context": "c", "choices": choices, "label": label} for label in labels]
    report = RowReport("t.jsonl", num_rows=len(rows))
    found = ChooseExample.settle([parser(record_of(**row)) for row in rows], report, None)
    return [one.label for one in found], report


def test_the_labels_of_a_file_are_all_positions_or_all_texts():
    labels, report = settle(PRICES, ["2", "3", "1", "2"])
    assert labels == [0, 1, 2, 0]
    assert "read as texts of choices; 3 of 4 could be positions too, first" in report.notes[0]
    labels, report = settle(PRICES, ["0", "1", 2])
    assert labels == [0, 1, 2]
    assert "read as positions of choices; 2 of 3 could be texts too" in report.notes[0]
    labels, report = settle(["one", "two", "1"], ["one", "two", "two", "0"])
    assert labels == [0, 1, 1]
    assert report.first_broken == [
        "t.csv, line 2, label: '0' isn't the text of a choice; the other rows give texts"
    ]
    assert settle(["0", "1"], ["1", "0"])[1].notes == []


def test_labels_that_could_be_both_are_an_error_unless_they_are_numbers():
    with pytest.raises(InputError, match=r"'1' is both a position and .* \(as in 2 of 2 rows\)"):
        settle(PRICES, ["1", "2"])
    assert settle(PRICES, [1, 2.0])[0] == [1, 2]


@pytest.mark.parametrize("label", [True, 3, -1, 0.5, "x", "same", "", "9" * 5000, ["one"]])
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
        TASK.make_example(("c", ["x"] * number), "here")


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


def test_the_command_gives_each_context_the_choices():
    inputs = ChooseInputs(choice=("a", "b"), question="q")
    assert [TASK.make_example(each, "x") for each in inputs.gather(["c", "d"])] == [
        ChooseExample("c", ("a", "b"), "q", place="x"),
        ChooseExample("d", ("a", "b"), "q", place="x"),
    ]
    assert ChooseInputs().gather([]) == []
    for choice in (None, ("a",)):
        with pytest.raises(InputError, match="at least two choices, each with --choice"):
            ChooseInputs(choice=choice).gather(["c"])


TASK = Choose(ChooseSettings(max_length=12))


def list_examples() -> list[ChooseExample]:
    """The choice with the animal of the context is right; there are two or three."""
    animals = ("cat", "dog", "fox")
    found = []
    for number in range(24):
        name = animals[number % 3]
        others = [other for other in animals if other != name][: 1 + number % 2]
        choices = [f"a {other} lost" for other in others]
        place = number // 3 % (len(choices) + 1)
        choices.insert(place, f"a {name} lost")
        found.append(ChooseExample(f"the {name} saw", tuple(choices), "", place, f"line {number}"))
    return found


def test_it_learns_which_animal_goes_on_and_is_saved(tmp_path):
    examples = list_examples()
    task = Choose.from_examples(TASK.settings, examples)
    choose, found = learn(task, examples, tmp_path, num_steps=150)
    assert {len(one.choices) for one in examples} == {2, 3}
    assert found.metrics["accuracy"] == 1.0
    assert not found.mistakes
    assert not found.warnings

    one, two = choose(
        [
            ("the dog saw", ["a fox lost", "a dog lost"]),
            {"context": "the fox saw", "choices": ["a fox lost", "a cat lost", "a dog lost"]},
        ]
    )
    assert (one.index, one.text, two.index) == (1, "a dog lost", 0)
    assert sum(two.probabilities) == close(1)
    assert one.describe() == f"a dog lost\t{format_percent(one.probability)}"
    assert json.loads(json.dumps(one.to_json()))["index"] == 1
    (tmp_path / "task.json").unlink()  # what another tool writes
    assert isinstance(Chooser.load(tmp_path, device="cpu", engine="torch").task, Choose)


def test_sequences_are_context_question_and_choice():
    example = ChooseExample("the cat", ("a dog", "fox " * 20), "saw")
    (encoded,) = TASK.encode([example], TOKENIZER)
    expected = TOKENIZER.encode("the cat", "saw a dog")
    assert encoded.sequences[0] == (expected.ids, expected.token_type_ids)
    assert len(encoded.sequences[1].ids) == 12
    assert encoded.is_cut
    assert encoded.labels is None
    assert example.num_chars == 7 + 9 + 7 + 84


def test_a_temperature_is_found_among_choices_of_any_number():
    examples = [ChooseExample("a", tuple("abcd"[:number]), label=0) for number in (2, 3, 4)]
    logits = [np.array([6.0, 0, 0, 0][: len(one.choices)]) for one in examples]
    assert TASK.fit_numbers(examples, [], logits) is TASK  # all are right
    wrong = [replace(examples[0], label=1), *examples[1:]]
    assert TASK.fit_numbers(wrong, [], logits).numbers["temperature"] > 1.0


def test_mistakes_and_models_that_have_learned_nothing_are_told():
    examples = [ChooseExample("a", ("x", "y"), "q", label, f"line {label}") for label in (0, 1)]
    always = [TASK.decode(examples[0], None, np.array([1.0, 0.0]))] * 2
    found = TASK.score(examples, always).evaluate()
    (warning,) = found.warnings
    assert warning.startswith("every prediction is choice 0: the model has learned nothing; try")
    both = [TASK.decode(each, None, np.array([each.label, 0.5])) for each in examples]
    (warning,) = TASK.score(examples, both).evaluate().warnings
    assert warning.startswith("accuracy (0.0 %) isn't above that of guessing (50.0 %): the model")
    (mistake,) = found.mistakes
    assert (mistake.place, mistake.text, mistake.expected, mistake.predicted) == (
        "line 1",
        "a q",
        "y",
        "x",
    )
    assert TASK.score(examples, always).metrics == {"accuracy": 0.5}
    low, high = found.intervals["accuracy"]
    assert low < 0.5 < high


def test_a_models_temperature_is_above_zero(tmp_path):
    assert isinstance(load_task(tmp_path, BertConfig(), "BertForMultipleChoice"), Choose)
    save_task(tmp_path, replace(TASK, numbers={"temperature": -1.0}))
    with pytest.raises(CheckpointError, match=r"task\.json: the temperature is -1"):
        load_task(tmp_path, BertConfig(), "BertForMultipleChoice")
