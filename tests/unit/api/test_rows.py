"""Rows from Python: every kind gives the same records, and what can't be read is named."""

import math
from collections import namedtuple
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

import bertkit
from bertkit.api.inputs import list_texts, read_texts
from bertkit.base.errors import InputError, MissingFileError
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import open_records
from bertkit.data.tables.rows import name_files
from bertkit.data.tables.settings import TableSettings
from bertkit.retrieval.documents import read_rows
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.regress.task import RegressExample
from bertkit.tasks.texts import build_text_parser

ROWS = [{"text": "one", "label": "x"}, {"text": "two", "label": "y"}]
LabelFirst = namedtuple("LabelFirst", "label text")


def read(rows: object) -> list[dict[str, object]]:
    table = open_records(rows)
    return [dict(record.values) for record in table.records()]


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        tuple(ROWS),
        [("one", "x"), ("two", "y")],
        [LabelFirst("x", "one"), LabelFirst("y", "two")],
        list(pd.DataFrame(ROWS)[["label", "text"]].itertuples(index=False)),
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS, index=["a", "b"]),
        pa.Table.from_pylist(ROWS),
        Dataset.from_list(ROWS),
        Dataset.from_list(ROWS).to_iterable_dataset(),
    ],
    ids=[
        *("mappings", "tuple", "tuples", "namedtuples", "itertuples", "pandas", "index"),
        *("arrow", "datasets", "streamed"),
    ],
)
def test_every_kind_of_rows_gives_the_same_records(rows):
    assert read(rows) == ROWS


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["one", "cut", "two"]).drop(index=1),
        pd.Series(["one", "two"], name="review", dtype="category"),
        pd.Index(["one", "two"]),
        np.array(["one", "two"]),
        pa.array(["one", "two"]),
        pa.chunked_array([["one"], ["two"]]),
        Dataset.from_list(ROWS)["text"],
    ],
    ids=lambda column: type(column).__name__,
)
def test_a_column_is_a_list_of_texts(column):
    assert read(column) == [{"text": "one"}, {"text": "two"}]
    assert list_texts(column, None) == ["one", "two"]


def test_frames_and_columns_of_polars_are_read():
    polars = pytest.importorskip("polars")
    assert read(polars.DataFrame(ROWS)) == ROWS
    assert list_texts(polars.Series(["one", "two"]), None) == ["one", "two"]
    assert list_texts(polars.Series(["one", None]), None) == ["one", ""]


@pytest.mark.parametrize(
    ("texts", "place"),
    [
        (["one", b"two"], "texts, row 2 must be a text, got bytes"),
        (np.array(["one", 3], dtype=object), "texts, row 2 must be a text, got int"),
        ([{"text": "one"}, {"body": "two"}], "texts, row 2 has no text in text"),
    ],
)
def test_what_is_no_text_is_named_with_its_row(texts, place):
    with pytest.raises(InputError, match=f"^{place}$"):
        list_texts(texts, None)


@pytest.mark.parametrize("missing", [None, float("nan"), ""])
def test_a_missing_text_is_an_empty_one_as_in_csv(tmp_path, missing):
    frame = pd.DataFrame({"text": ["one", missing], "label": ["a", "b"]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    for rows in (tmp_path / "a.csv", frame, [("one", "a"), (missing, "b")]):
        table = open_records(rows)
        parse = build_text_parser(ClassifySettings(), table)
        assert [parse(record).text for record in table.records()] == ["one", ""]
    for texts in (["one", missing], frame["text"], frame):
        assert list_texts(texts, None) == ["one", ""]
    assert list_texts([missing, "one"], None) == ["", "one"]


def test_a_tuple_without_a_text_is_a_broken_row():
    assert read([(None, "x"), ("one", "y")])[0] == {"text": None, "label": "x"}


def test_labels_of_datasets_are_names():
    features = Features({"text": Value("string"), "label": ClassLabel(names=["no", "yes"])})
    dataset = Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=features)
    assert [row["label"] for row in read(dataset)] == ["yes", "no"]


def test_tuples_of_three_are_pairs_and_of_two_lists_tagged_words():
    table = open_records([("a", "b", "x")])
    assert table.roles == {"text": "text", "pair": "pair", "label": "label"}
    assert read([(["a", "b"], ["O", "B-X"])]) == [{"tokens": ["a", "b"], "tags": ["O", "B-X"]}]


def test_texts_are_read_like_lines():
    table = open_records(["one", "two"])
    assert (table.format, table.columns) == ("text", ("text",))


def test_values_become_plain():
    row = {"text": np.str_("a"), "label": np.int64(3), "n": float("nan"), "v": np.array([1, 2])}
    assert read([row]) == [{"text": "a", "label": 3, "n": None, "v": [1, 2]}]
    nested = {"labels": [np.int64(3)], "answers": {"text": ["a"], "answer_start": np.array([4])}}
    plain = [{"labels": [3], "answers": {"text": ["a"], "answer_start": [4]}}]
    assert repr(read([nested])) == repr(plain)
    frame = pd.DataFrame({"text": ["a", None], "day": [pd.NaT, pd.NaT]})
    assert read(frame)[1] == {"text": None, "day": None}


DECIMALS = [
    {"text": "one", "score": Decimal("3.25"), "id": Decimal(10**30), "parts": [Decimal("0.50")]},
    {"text": "two", "score": Decimal("4.00"), "id": Decimal(7), "parts": []},
    {"text": "three", "score": None, "id": Decimal(-8), "parts": [Decimal(2), None]},
]
NUMBERS = [
    {"text": "one", "score": 3.25, "id": 10**30, "parts": [0.5]},
    {"text": "two", "score": 4, "id": 7, "parts": []},
    {"text": "three", "score": None, "id": -8, "parts": [2, None]},
]


@pytest.mark.parametrize(
    "rows",
    [
        DECIMALS,
        pd.DataFrame(DECIMALS),
        pa.Table.from_pylist(DECIMALS),
        Dataset.from_list(DECIMALS),
        Dataset.from_list(DECIMALS).to_iterable_dataset(),
    ],
    ids=["mappings", "pandas", "Arrow", "datasets", "streamed"],
)
def test_decimals_are_numbers_in_every_kind_of_rows(rows):
    found = read(rows)
    assert repr(found) == repr(NUMBERS)
    assert [document.id for document in read_rows(rows, id="id")] == [str(10**30), "7", "-8"]
    parse = RegressExample.build_parser(
        RegressSettings(label_column="score"), open_records(rows), needs_answer=True
    )
    targets = [parse(Record(values, "a row")).number for values in found[:2]]
    assert targets == [3.25, 4.0]
    with pytest.raises(BrokenRowError):
        parse(Record(found[2], "a row"))


def test_odd_decimals_take_no_more_than_a_number():
    odd = ("1E+999999999999", "-1E+999999999999", "1E-999999999999", "NaN", "sNaN", "-0")
    rows = [{"text": "one", "x": Decimal(value)} for value in odd]
    assert [row["x"] for row in read(rows)] == [math.inf, -math.inf, 0.0, None, None, 0]


def test_the_identity_follows_from_the_rows():
    first, same = open_records(ROWS).identity, open_records(list(ROWS)).identity
    assert first == same
    assert first["name"] == "train"
    assert open_records(ROWS[::-1]).identity != first


def test_a_row_unlike_the_first_is_broken_and_named():
    table = open_records([*ROWS, ("a", "b", "c"), 3])
    assert len(list(table.records())) == 2
    report = table.report
    assert report.num_broken == 2
    assert report.first_broken[0] == "train, row 3 isn't like the first row, which has text, label"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (3, "a list of rows, got int"),
        (np.array("a text"), "a list of rows, got ndarray without dimensions$"),
        ({"text": ["a"]}, "a list of rows, got dict"),
        ([("a",)], "the first is a tuple of 1$"),
        ({"a", "b"}, "a list of rows, got set$"),
        (None, "a list of rows, got None$"),
        (
            pd.DataFrame([["a", "x", "y"]], columns=["text", "label", "label"]),
            "^the DataFrame has the column label twice; rename one of them$",
        ),
        (pa.table([["a"], ["b"]], names=["text", "text"]), "^the Table has the column text twice"),
        (
            DatasetDict({"train": Dataset.from_list(ROWS), "test": Dataset.from_list(ROWS)}),
            r"^a DatasetDict has several .* such as dataset\['train'\]: train, test$",
        ),
        ([object()], "the first is object"),
        (pd.DataFrame({"text": ["a", 3]}), "DataFrame has a column of mixed types: .* column text"),
    ],
)
def test_what_isnt_rows_is_told(rows, message):
    with pytest.raises(InputError, match=message):
        open_records(rows)


def test_texts_of_a_column(tmp_path):
    assert list_texts([{"body": "a"}], "body") == ["a"]
    with pytest.raises(InputError, match="no column text; name one with text_column: body"):
        list_texts([{"body": "a"}], None)
    with pytest.raises(InputError, match="row 1 has no text in body"):
        list_texts([{"body": 3}], "body")


def test_names_of_files_are_told_from_texts(tmp_path):
    name = str(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_text("a")
    assert name_files(name) == [name]
    assert name_files([tmp_path / "a.txt"]) == [name]
    assert name_files([name, tmp_path]) == [name, str(tmp_path)]
    assert name_files(f"{tmp_path}/*.txt") == [f"{tmp_path}/*.txt"]
    assert name_files([name, "a text"]) is None
    assert name_files((name,)) is None
    assert name_files([""]) is None
    assert name_files([]) is None
    assert name_files(pd.DataFrame(ROWS)) is None


def test_strings_in_a_list_are_texts_whatever_files_there_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cats").mkdir()
    (tmp_path / "cats" / "a.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "dogs").write_text("a\nb\n")
    texts = ["cats", "dogs"]
    assert read_texts(texts, TableSettings()) == texts
    assert "cats, dogs: read as texts, though there are files of these" in capsys.readouterr().err
    assert read_texts([Path("cats"), Path("dogs")], TableSettings()) == [
        *("one", "two", "three"),
        *("a", "b"),
    ]
    assert bertkit.embed(["."]).shape[0] == 1
    assert bertkit.search("dogs", texts, top_k=1)[0].text == "dogs"


@pytest.mark.parametrize("text", ["Größe " * 44, "щ" * 130, "a\0b", "x/" * 3000])
def test_a_text_is_never_an_error_of_the_disk(text):
    assert name_files([text]) is None
    with pytest.raises(MissingFileError, match=r"there is no file .* a text goes into a list"):
        name_files(text)


def test_one_name_of_nothing_says_how_to_give_a_text():
    message = r"^there is no file 'A dog saw the cat\.'; .* into a list: \[text\]$"
    for call in (
        lambda: bertkit.embed("A dog saw the cat."),
        lambda: bertkit.search("cat", "A dog saw the cat."),
        lambda: bertkit.train_tokenizer("A dog saw the cat."),
        lambda: bertkit.pretrain("A dog saw the cat."),
        lambda: bertkit.finetune("classify", train="A dog saw the cat."),
    ):
        with pytest.raises(MissingFileError, match=message):
            call()
