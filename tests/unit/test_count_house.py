"""`tools/count_house.py` counts what is there: lines, and which rooms know a subject."""

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
