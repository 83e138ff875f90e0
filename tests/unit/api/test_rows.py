"""Rows from Python: every kind gives the same records, and what can't be read is named."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import ClassLabel, Dataset, Features, Value

import bertkit
from bertkit.api.inputs import list_texts, name_files
from bertkit.base.errors import InputError, MissingFileError
from bertkit.data.tables.record import RowReport
from bertkit.data.tables.records import open_records

ROWS = [{"text": "one", "label": "x"}, {"text": "two", "label": "y"}]


def read(rows: object) -> list[dict[str, object]]:
    table = open_records(rows)
    return [dict(record.values) for record in table.records(RowReport(table.name))]


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        tuple(ROWS),
        [("one", "x"), ("two", "y")],
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS, index=["a", "b"]),
        pa.Table.from_pylist(ROWS),
        Dataset.from_list(ROWS),
    ],
    ids=["mappings", "tuple", "tuples", "pandas", "index", "arrow", "datasets"],
)
def test_every_kind_of_rows_gives_the_same_records(rows):
    assert read(rows) == ROWS


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
    frame = pd.DataFrame({"text": ["a", None], "day": [pd.NaT, pd.NaT]})
    assert read(frame)[1] == {"text": None, "day": None}


def test_the_identity_follows_from_the_rows():
    first, same = open_records(ROWS).identity(), open_records(list(ROWS)).identity()
    assert first == same
    assert first["name"] == "train"
    assert open_records(ROWS[::-1]).identity() != first


def test_a_row_unlike_the_first_is_broken_and_named():
    table, report = open_records([*ROWS, ("a", "b", "c"), 3]), RowReport("train")
    assert len(list(table.records(report))) == 2
    assert report.num_broken == 2
    assert report.first_broken[0] == "train, row 3 isn't like the first row, which has text, label"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (3, "a list of rows, got int"),
        ({"text": ["a"]}, "a list of rows, got dict"),
        ([("a",)], "the first is tuple"),
        ([object()], "the first is object"),
        (pd.DataFrame({"text": ["a", 3]}), "DataFrame has a column of mixed types"),
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
    assert name_files([""]) is None
    assert name_files([]) is None
    assert name_files(pd.DataFrame(ROWS)) is None


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
