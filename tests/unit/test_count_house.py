"""`tools/count_house.py` counts what is there: lines, and which rooms know a subject."""

import ast

import pytest
from tools import count_house

SUBJECT = count_house.SUBJECTS["next sentence"]


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "room.py"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    "line",
    [
        "next_sentence = 1",
        "import a.next_sentence",
        "from a import NextSentence as other",
        "call(is_next=1)",
        "a.seq_relationship.weight",
        "print('the next sentence')",
        "def f(is_next): ...",
    ],
)
def test_names_and_strings_are_words_that_a_room_knows(line, file):
    assert [number for _, number in count_house.find_words(file(f"a = 1\n{line}\n"), SUBJECT)]


@pytest.mark.parametrize(
    "text",
    [
        "# next sentence",
        '"""Next sentence."""',
        'def f():\n    """Next sentence."""',
        "sentence = 1",
    ],
)
def test_comments_and_docstrings_are_not(text, file):
    assert list(count_house.find_words(file(text), SUBJECT)) == []


def test_lines_are_all_lines(file):
    path = file('"""A room."""\n\n# empty\na = 1\n')
    assert count_house.count_lines(path) == 4
    assert count_house.list_files(path.parent) == [path]


def test_each_limit_is_of_a_count():
    counts = count_house.count()
    assert all(count_house.measure(counts, name) > 0 for name in count_house.ASKED)
    rooms = sum(lines for room, lines in counts["rooms"].items() if room in count_house.WINGS)
    assert counts["lines of src"] == counts["lines of the core"] + rooms


CLASSES = """
class Base:
    name: str = "base"
    kind: type[int] = int

    def run(self): self.read()
    def read(self): ...
    def keep(self): ...

class Middle(Base[int]):
    name = "middle"
    def read(self): ...

class Last(Middle):
    kind = bool
    def run(self): ...
    def __init__(self): ...
"""


def test_hooks_are_what_a_subclass_at_any_depth_defines_anew_and_data_are_none():
    hooks = count_house.list_hooks({"a.py": ast.parse(CLASSES)})
    assert hooks == {"Base": ["kind", "read", "run"], "Middle": []}


def test_a_function_is_called_from_one_place_if_its_name_is_read_once():
    first = ast.parse("def once(): ...\ndef twice(): ...\ndef never(): ...\nonce()")
    second = ast.parse("import a\na.twice()\nsorted([], key=a.twice)")
    assert count_house.list_functions_called_once({"a.py": first, "b.py": second}) == {
        "once": "a.py:1"
    }


def test_any_object_and_cast_are_counted_where_they_are_used():
    text = "from typing import Any, cast\ndef f(a: Any, b: list[object]): return cast(int, a)"
    assert count_house.count_untyped({"a.py": ast.parse(text)}) == {"a.py": 3}


def test_options_are_those_of_our_own_commands():
    options, shown = count_house.list_options(), count_house.list_shown_options()
    assert {"embed", "finetune classify"} <= options.keys()
    assert "study" not in options
    assert "epochs" in shown["finetune classify"]
    assert shown["finetune classify"] < options["finetune classify"]
