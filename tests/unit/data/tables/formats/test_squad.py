"""SQuAD's JSON becomes a record a question; what is wrong is told with its path."""

import copy
import json

import pytest
from tests.unit.data.tables.labeled import read, read_values, refuse, write

from bertkit.data import encodings
from bertkit.data.tables.formats import squad
from bertkit.data.tables.records import open_records

CONTEXT = "One two three."
ANSWERS = [{"text": "One", "answer_start": 0}, {"text": "two", "answer_start": 4}]
FILE = {
    "version": "v2.0",
    "data": [
        {
            "title": "Numbers",
            "paragraphs": [
                {
                    "context": CONTEXT,
                    "qas": [
                        {"id": "a", "question": "Which?", "answers": ANSWERS},
                        {
                            "id": 7,
                            "question": "",
                            "answers": [],
                            "plausible_answers": ANSWERS,
                            "is_impossible": True,
                        },
                        {"id": "c", "question": "What?"},
                    ],
                }
            ],
        },
        {"paragraphs": [{"context": "x", "qas": [{"id": "d", "question": "?", "answers": []}]}]},
    ],
}


def question(identity, text, answers, is_impossible, title="Numbers", context=CONTEXT):
    return {
        "id": identity,
        "title": title,
        "question": text,
        "context": context,
        "answers": answers,
        "is_impossible": is_impossible,
    }


RECORDS = [
    question("a", "Which?", ANSWERS, False),
    question("7", "", [], True),
    question("c", "What?", [], False),
    question("d", "?", [], True, "", "x"),
]


def write_json(folder, content):
    return write(folder, "a.json", json.dumps(content))


def test_a_file_gives_its_questions(tmp_path):
    path = write_json(tmp_path, FILE)
    assert read_values(path) == RECORDS
    assert read(path)[0][2].place == f"{path}, data[0].paragraphs[0].qas[2]"
    assert open_records(path).columns == tuple(RECORDS[0])
    assert open_records(path).format == "json"
    assert read_values(path, format="squad") == RECORDS


def test_an_answer_may_lack_its_beginning(tmp_path):
    file = copy.deepcopy(FILE)
    del file["data"][0]["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"]
    answers = read_values(write_json(tmp_path, file))[0]["answers"]
    assert answers == [{"text": "One", "answer_start": None}, ANSWERS[1]]


def test_rows_of_other_formats_are_left_as_they_are(tmp_path):
    lines = [
        {"question": "q", "context": "c", "answers": ["a", "b"], "label": 1, "id": "x"},
        {"question": "q", "context": "c", "answers": {"text": [], "answer_start": []}, "id": "x"},
    ]
    path = write(tmp_path, "a.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    assert read_values(path) == lines


def put(*path_and_value):
    """A change of the file: sets what a path leads to, or takes it away where that is None."""
    *path, last, value = path_and_value

    def change(file):
        for key in path:
            file = file[key]
        if value is None:
            del file[last]
        else:
            file[last] = value

    return change


QUESTION = ("data", 0, "paragraphs", 0, "qas", 0)
PLACE = "data[0].paragraphs[0].qas[0]"


@pytest.mark.parametrize(
    ("change", "place", "match", "num_broken"),
    [
        (put("data", 0, 3), "data[0]", "must be an object", 1),
        (put("data", 0, "paragraphs", None), "data[0]", "paragraphs is missing", 1),
        (put("data", 0, "paragraphs", 0, "x"), "data[0].paragraphs[0]", "must be an object", 1),
        (put(*QUESTION[:4], "context", 3), "data[0].paragraphs[0]", "must be text, got 3", 3),
        (put(*QUESTION[:4], "qas", 3), "data[0].paragraphs[0]", "qas must be a list", 1),
        (put(*QUESTION, []), PLACE, "must be an object", 1),
        (put(*QUESTION, "id", [1]), PLACE, "isn't in SQuAD's format: id", 1),
        (put(*QUESTION, "question", None), PLACE, "question is missing", 1),
        (put(*QUESTION, "answers", 0, "answer_start", "0"), PLACE, "a whole number, got '0'", 1),
        (
            put(*QUESTION, "answers", 1, "answer_start", True),
            PLACE,
            "answers.1.answer_start must be a w",
            1,
        ),
    ],
)
def test_a_fault_is_told_with_its_path(tmp_path, change, place, match, num_broken):
    file = copy.deepcopy(FILE)
    change(file)
    found, report = read(path := write_json(tmp_path, file))
    assert report.num_broken == num_broken
    assert report.num_rows == num_broken + len(found)
    assert found[-1].values["id"] == "d"
    assert report.first_broken[0].startswith(f"{path}, {place} ")
    assert match in report.first_broken[0]


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"[]", r"a\.json isn't in SQuAD's format, an object whose data is a list of articles"),
        (b'{"data": {}}', r"isn't in SQuAD's format"),
        (b'{"data": [{"a": 1}]}', r"isn't in SQuAD's format.* --format json reads a list of obj"),
        (b'{"a": 1}\n{"a": 2}\n', r"isn't JSON \(Extra data.*; if each line is an object, name it"),
        (json.dumps(FILE).encode()[:-9], r"a\.json isn't JSON \("),
        (b'{"data": [' + b"[" * 100_000, r"a\.json isn't JSON \("),
        (b'{"data": [], "data": []}', r"the key 'data' appears twice"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path, content, match):
    refuse(write(tmp_path, "a.json", content), match, format="squad")


def test_a_file_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    path = write_json(tmp_path, FILE)
    monkeypatch.setattr(squad, "MAX_VALUES", 10)
    refuse(path, r"a\.json has \d+ commas and brackets; at most 10 are read; if each line")
    monkeypatch.setattr(squad, "MAX_FILE_BYTES", 100)
    refuse(
        path, r"a\.json has more than 0 MiB, the limit for a file of JSON; divide it, or write an"
    )


def test_each_question_with_what_isnt_unicode_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(encodings, "LEAST_INVALID", 99)
    articles = [
        {
            "paragraphs": [
                {"context": "B?d. " * 20, "qas": [{"id": "a", "question": "Which?"}] * 3},
                {
                    "context": "Good. " * 20,
                    "qas": [
                        {"id": "b", "question": "Wh?t"},
                        {"id": "c", "question": "What"},
                        {"id": "d", "question": "\ud83d"},
                    ],
                },
            ]
        }
    ]
    content = json.dumps({"data": articles}).encode().replace(b"B?d", b"B\xffd")
    path = write(tmp_path, "a.json", content.replace(b"Wh?t", b"Wh\xfft"))
    found, report = read(path)
    assert (len(found), report.num_undecodable) == (6, 5)
    assert [found[n].values["question"] for n in (3, 5)] == ["Wh\ufffdt", "\ufffd"]
    assert found[0].values["context"].startswith("B\ufffdd. ")
