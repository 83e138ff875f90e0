"""What every task has: an entry, and examples of what callers give."""

import pytest
from tools import count_house

from bertkit.base.errors import InputError
from bertkit.tasks.table import TASKS

CHOICES = {"context": "ab", "choices": ("c", "d"), "question": "e"}
QUESTION = {"question": "ab", "context": "cde"}
ONE_TEXT = (None, 3, b"a", ("a",), ("a", 1), ["a", "b"], {"text": "a"})
# A task: what it takes, with the number of characters and what is shown of it.
TAKEN = {
    "classify": {"abc": (3, "abc"), ("ab", "c"): (3, "ab ||| c")},
    "regress": {"abc": (3, "abc"), ("ab", "c"): (3, "ab ||| c")},
    "tag": {
        "ab c": (4, ""),
        ("ab", "c"): (3, ""),
        (("text", "ab c"),): (4, ""),
        (("tokens", ("ab", "c")),): (3, ""),
    },
    "answer": {("ab", "cde"): (5, "ab"), tuple(QUESTION.items()): (5, "ab")},
    "choose": {("ab", ("c", "d")): (6, "ab"), tuple(CHOICES.items()): (10, "ab e")},
    "embed": {"abc": (3, "abc")},
    "rerank": {("ab", "cde"): (5, "ab"), ("ab", ("c", "d")): (6, "ab")},
}
# The words of its error, and what it refuses.
REFUSED = {
    "classify": ("a text or a tuple of two", ONE_TEXT),
    "regress": ("a text or a tuple of two", ONE_TEXT),
    "tag": (
        "a text or a list of words",
        (None, 3, b"Ada", ["Ada", 3], [["Ada"]], {"word": "Ada"}, {1}),
    ),
    "answer": (
        "a tuple of question and context",
        ("Who?", ("Who?",), ("a", "b", "c"), {"question": "a"}, None, 3),
    ),
    "choose": (
        "a tuple of context and a list of choices",
        (
            *("c", ("c",), ("c", "ab"), ("c", ["a", 1]), (1, ["a", "b"]), {"context": "c"}),
            {**CHOICES, "question": 3},
        ),
    ),
    "embed": ("a text", ONE_TEXT),
    "rerank": (
        "a tuple of a query and a passage",
        (None, 3, "a", ("a",), ("a", ()), ("a", ("b", 1)), (1, "a"), {"query": "a"}),
    ),
}


def test_each_entry_leads_to_its_task():
    assert TAKEN.keys() == REFUSED.keys() == TASKS.keys()
    for name, entry in TASKS.items():
        task = entry.load()(entry.settings())
        assert task.name == name


def test_whoever_writes_a_task_has_few_hooks_to_know():
    hooks = count_house.list_hooks(count_house.read_trees())
    for kind in ("Task", "TaskExample", "TaskScoring", "TaskPrediction"):
        assert len(hooks[kind]) <= 10, hooks[kind]


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, taken in TAKEN.items() for value in taken]
)
def test_an_example_knows_its_size_and_what_is_shown(name, value):
    entry, pairs = TASKS[name], isinstance(value[0], tuple)
    task = entry.load()(entry.settings())
    example = task.make_example(dict(value) if pairs else value, "here")
    assert (example.num_chars, example.shown) == TAKEN[name][value]
    assert (example.place, example.example_id) == ("here", "here")
    assert (example.label_names, example.stratum) == ((), None)


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, (_, values) in REFUSED.items() for value in values]
)
def test_another_input_is_refused(name, value):
    entry = TASKS[name]
    task = entry.load()(entry.settings())
    with pytest.raises(InputError, match=f"^input 2: expected {REFUSED[name][0]}.* got "):
        task.make_example(value, "input 2")
