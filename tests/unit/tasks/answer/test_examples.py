"""Records become questions, and answers are found in their contexts."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bertkit.base.errors import InputError
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import RecordTable, open_records
from bertkit.data.tables.settings import RecordSettings
from bertkit.tasks.answer import AnswerSettings
from bertkit.tasks.answer.examples import AnswerExample, GoldAnswer, list_warnings, locate_answer

CONTEXT = "Ada wrote it. Ada died in 1852."
COLUMNS = ("id", "question", "context", "answers")


def parse(values, columns=COLUMNS, *, needs_answer=True, **settings):
    table = RecordTable("q.jsonl", "jsonl", None, columns=columns)
    parser = AnswerExample.build_parser(
        AnswerSettings(**settings), table, needs_answer=needs_answer
    )
    return parser(Record({"question": "Who?", "context": CONTEXT, **values}, "q.jsonl, line 3"))


def read_file(path):
    table = open_records(path, RecordSettings(max_broken=0.5))
    parser = AnswerExample.build_parser(AnswerSettings(), table, needs_answer=True)
    return table.read(parser), table.report


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("Ada", 0, GoldAnswer("Ada", 0, False)),
        ("Ada", 14, GoldAnswer("Ada", 14, False)),
        ("Ada", 13, GoldAnswer("Ada", 14, True)),
        ("Ada", 6, GoldAnswer("Ada", 0, True)),
        ("Ada", 8, GoldAnswer("Ada", 14, True)),
        ("Ada", 999, GoldAnswer("Ada", 14, True)),
        ("Ada", -1, GoldAnswer("Ada", 0, True)),
        ("1852", 10**30, GoldAnswer("1852", 26, True)),
        ("Ada", None, GoldAnswer("Ada", 0, False, True)),
        (" Ada ", None, GoldAnswer("Ada", 0, False, True)),
        ("d", None, GoldAnswer("d", 1, False, True)),
        ("i", None, GoldAnswer("i", 10, False, True)),
        ("in", None, GoldAnswer("in", 23, False)),
        (" wrote it", 3, GoldAnswer("wrote it", 4, False)),
        ("Babbage", 0, GoldAnswer("Babbage", None, False)),
        ("Babbage", None, GoldAnswer("Babbage", None, False)),
    ],
)
def test_an_answer_is_taken_where_it_is_or_nearest_to_that(text, start, expected):
    assert locate_answer(CONTEXT, text, start) == expected


def test_the_first_answer_that_is_there_is_learned():
    example = parse({"answers": [{"text": "Bob", "answer_start": 0}, {"text": "it"}]})
    assert [gold.text for gold in example.answers] == ["Bob", "it"]
    assert example.span == (10, 12)


@pytest.mark.parametrize(
    "values",
    [
        {"answers": [], "is_impossible": True},
        {"answers": [{"text": "Ada", "answer_start": 0}], "is_impossible": True},
        {"answers": []},
        {"answers": None},
        {"answers": " "},
        {"answers": "Ada", "is_impossible": "True"},
        {"answers": "", "is_impossible": ""},
    ],
)
def test_a_question_may_have_no_answer(values):
    example = parse(values)
    assert example.answers == ()
    assert example.span is None


@pytest.mark.parametrize("name", ["q.jsonl", "q.parquet"])
def test_rows_of_the_hub_are_read(tmp_path, name):
    rows = [
        {"id": "a", "answers": {"text": ["Ada", "it"], "answer_start": [14, 10]}},
        {"id": "b", "answers": {"text": [], "answer_start": []}},
        {"id": "a", "answers": {"text": ["Ada"], "answer_start": [0]}},
        {"id": "d", "answers": {"text": ["Ada", "it"], "answer_start": [0]}},
    ]
    rows = [{"question": "Who?", "context": CONTEXT, **row} for row in rows]
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if name == "q.parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    examples, report = read_file(path)
    assert [(one.example_id, one.span) for one in examples] == [("a", (14, 17)), ("b", None)]
    assert "has the id 'a', which occurred before" in report.first_broken[0]
    assert "in answers where a text, a list of objects" in report.first_broken[1]
    assert report.num_broken == 2


def test_answers_may_be_a_text_in_another_column():
    columns = ("Q", "passage", "answer")
    values = {"Q": "When?", "passage": CONTEXT, "answer": "1852"}
    names = {"question_column": "Q", "context_column": "passage"}
    example = parse(values, columns, **names)
    assert (example.question, example.span) == ("When?", (26, 30))
    assert example.example_id == example.place


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"answers": "Babbage"}, "line 3 has an answer that isn't in its context: 'Babbage'"),
        ({"answers": [], "is_impossible": False}, "has no answer and isn't marked as unanswerable"),
        (
            {"answers": "", "is_impossible": "false"},
            "has no answer and isn't marked as unanswerable",
        ),
        ({"answers": "Ada", "is_impossible": 1}, "has 1 in is_impossible where true or false"),
        ({"answers": [{"text": " "}]}, "has no answer and isn't marked as unanswerable"),
        ({}, "line 3 has no answers"),
        ({"answers": 3}, "has 3 in answers where a text, a list"),
        ({"answers": [{"text": 3}]}, "where a text, a list"),
        ({"answers": [{"text": "Ada", "answer_start": "0"}]}, "where a text, a list"),
        ({"answers": [{"text": "Ada", "answer_start": True}]}, "where a text, a list"),
        ({"answers": ["Ada"]}, "where a text, a list"),
        ({"answers": {"text": ["Ada"]}}, "or an object of both lists should be"),
        ({"answers": "Ada", "context": 7}, "int in context where a text should be"),
        ({"answers": "Ada", "question": 7}, "int in question where a text should be"),
    ],
)
def test_a_record_that_cannot_be_used_is_broken(values, message):
    with pytest.raises(BrokenRowError, match=message):
        parse(values)


def test_an_id_that_was_there_before_is_broken_where_answers_are_learned():
    table = RecordTable("q.csv", "csv", None, columns=(*COLUMNS, "answer"))
    values = {"id": 0, "question": "Who?", "context": CONTEXT, "answer": "Ada", "answers": "Ada"}
    records = [Record(values | {"id": id_}, f"line {id_}") for id_ in (0, "", "", "0")]
    parser = AnswerExample.build_parser(AnswerSettings(), table, needs_answer=True)
    records[2] = Record(records[2].values, "line 3")
    assert [parser(record).example_id for record in records[:3]] == ["0", "line ", "line 3"]
    with pytest.raises(BrokenRowError, match="line 0 has the id '0', which occurred before"):
        parser(records[3])
    parser = AnswerExample.build_parser(AnswerSettings(), table, needs_answer=False)
    assert [parser(record).example_id for record in (records[0], records[3])] == ["0", "0"]


@pytest.mark.parametrize("missing", ["question", "context", "answers"])
def test_missing_columns_are_listed(missing):
    columns = tuple(name for name in COLUMNS if name != missing)
    with pytest.raises(InputError, match=rf"{missing}; name one of its columns .*: id, "):
        parse({}, columns)


def test_oddities_are_counted():
    examples = [
        parse({"answers": [{"text": "Ada", "answer_start": 1}, {"text": "Bob"}]}),
        parse({"answers": "1852"}),
        parse({"answers": ""}),
    ]
    lines = list_warnings(examples)
    assert lines[0] == "1 of 3 questions without an answer"
    assert lines[1].startswith("1 answer not at answer_start;")
    assert lines[2].startswith("1 answer not in the context beside others that are;")
    assert all(line.endswith("first at q.jsonl, line 3") for line in lines[1:])
    assert list_warnings(examples[1:2]) == []
    (line,) = list_warnings([parse({"answers": "Ada"}), parse({"answers": "1852"})])
    assert line.startswith("1 answer without answer_start whose words occur several times; the")


@pytest.mark.parametrize("start", [14, "14", 14.0, "14.0", " 14 "])
@pytest.mark.parametrize("name", ["answer_start", "start"])
def test_the_start_of_an_answer_may_stand_beside_it(name, start):
    example = parse({"answers": "Ada", name: start})
    assert example.answers == (GoldAnswer("Ada", 14, False),)
    for missing in (None, ""):
        assert parse({"answers": "Ada", name: missing}).answers[0].is_ambiguous


@pytest.mark.parametrize("start", ["here", 1.5, True, [14]])
def test_a_start_beside_an_answer_is_a_number(start):
    with pytest.raises(BrokenRowError, match="in answer_start where the place of the"):
        parse({"answers": "Ada", "answer_start": start})


@pytest.mark.parametrize("start", [12.5, "00:01"])
def test_a_column_named_start_may_mean_something_else(start):
    example = parse({"answers": "1852", "start": start})
    assert example.answers == parse({"answers": "1852"}).answers
    (line,) = list_warnings([example, parse({"answers": "1852", "start": ""})])
    assert line.startswith("1 row whose column start isn't the place of the answer; it isn't used")


@pytest.mark.parametrize(
    "answers", [[{"text": "Ada", "start": 14}], {"text": ["Ada"], "start": [14]}]
)
def test_the_start_in_an_answer_may_be_called_start(answers):
    assert parse({"answers": answers}).span == (14, 17)


def test_whole_words_come_before_parts_of_words():
    gold = locate_answer("Canada knows Ada.", "Ada", None)
    assert gold == GoldAnswer("Ada", 13, False)
    assert locate_answer("canada, an ad, ad", "ad", None) == GoldAnswer("ad", 11, False, True)
    assert locate_answer("東京は東京です", "東京", None) == GoldAnswer("東京", 0, False, True)
