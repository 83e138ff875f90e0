"""Parquet: rows as Python values, texts of any column of texts, files copied where they must be."""

import datetime as dt
import gzip
import tempfile
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.data.corpora import COMPRESS, write, write_parquet
from tests.unit.data.corpora import read as read_corpus
from tests.unit.data.tables.labeled import read, read_values, refuse

from bertkit.base.errors import InputError, StorageError
from bertkit.data import documents as corpus_rows
from bertkit.data.tables.formats import parquet
from bertkit.data.tables.texts import open_texts


def test_values_are_pythons(tmp_path):
    path = write_parquet(
        tmp_path / "a.parquet",
        text=pa.array(["a", None]).dictionary_encode(),
        raw=pa.array([b"x\xff", None]),
        tags=[["O", "B-X"], []],
        part=[{"a": 1}, None],
        n=[1, None],
        x=[0.5, 1.0],
        price=[Decimal("2.50"), Decimal("3.00")],
        day=[dt.date(2026, 1, 2), None],
        nanos=pa.array([1, 2], pa.timestamp("ns")),
    )
    found, report = read(path)
    assert found[0].values == {
        "text": "a",
        "raw": "x\ufffd",
        "tags": ["O", "B-X"],
        "part": {"a": 1},
        "n": 1,
        "x": 0.5,
        "price": 2.5,
        "day": "2026-01-02",
        "nanos": "1970-01-01 00:00:00.000000001",
    }
    assert found[1].values["text"] is None
    assert repr(found[1].values["price"]) == "3"
    assert report.num_undecodable == 1


def test_rows_are_numbered_across_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 3)
    path = write_parquet(tmp_path / "a.parquet", n=list(range(10)))
    found, _ = read(path)
    assert [record.place for record in found] == [f"{path}, row {n + 1}" for n in range(10)]
    assert [record.values["n"] for record in found] == list(range(10))


def test_a_value_that_python_cannot_hold_is_a_broken_row(tmp_path):
    wrong = pa.array([[b"x"], [b"\xff"], [b"y"]])
    path = write_parquet(
        tmp_path / "a.parquet", tags=wrong.cast(pa.list_(pa.binary())), n=[1, 2, 3]
    )
    table = pq.read_table(path)
    strings = pa.ListArray.from_arrays(
        [0, 1, 2, 3], pa.array([b"x", b"\xff", b"y"]).view(pa.string())
    )
    pq.write_table(table.set_column(0, "tags", strings), path)
    found, report = read(path)
    assert [record.values for record in found] == [{"tags": ["x"], "n": 1}, {"tags": ["y"], "n": 3}]
    assert report.num_broken == 1
    assert report.first_broken[0].startswith(
        f"{path}, row 2 has a value that can't be read ('utf-8'"
    )


def test_columns_of_one_name_and_rows_too_large_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), path)
    refuse(path, r"a\.parquet has the column a twice")
    path = write_parquet(tmp_path / "a.parquet", text=["a", "b" * 2000, "c"])
    monkeypatch.setattr(parquet, "MAX_ROW_BYTES", 3000)
    assert len(read_values(path)) == 3
    monkeypatch.setattr(parquet, "MAX_ROW_BYTES", 1000)
    refuse(path, r"a\.parquet, row 2 has more than 0 MiB, the limit for a row")


def test_lists_of_too_many_values_are_refused_before_they_are_made(tmp_path, monkeypatch):
    """Nulls take no bytes, neither in the file nor in an array of Arrow."""
    path = write_parquet(
        tmp_path / "a.parquet", n=[[None], [None] * 50, None], more=[[[1] * 4]] * 3
    )
    monkeypatch.setattr(parquet, "MAX_JSON_VALUES", 60)
    assert len(read_values(path)) == 3
    monkeypatch.setattr(parquet, "MAX_JSON_VALUES", 20)
    refuse(path, r"a\.parquet, row 2 has more than 20 values, the limit for a row")
    monkeypatch.setattr(parquet, "MAX_JSON_VALUES", 10)
    monkeypatch.setattr(parquet, "read_batches", lambda *_: pytest.fail("it was decoded"))
    refuse(path, r"the column n\S* has 52 values in 3 rows; the limit for a row is 10")


def test_rows_with_long_lists_are_decoded_a_few_at_a_time(tmp_path, monkeypatch):
    path = write_parquet(tmp_path / "a.parquet", n=[[None] * 50] * 6)
    sizes, read_batches = [], parquet.read_batches

    def watch(batches, decoder):
        return read_batches((sizes.append(len(batch)) or batch for batch in batches), decoder)

    monkeypatch.setattr(parquet, "read_batches", watch)
    monkeypatch.setattr(parquet, "VALUES_AT_ONCE", 120)
    assert len(read_values(path)) == 6
    assert sizes == [2, 2, 2]


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int8(), 50), pa.map_(pa.int8(), pa.int8())], ids=["fixed", "map"]
)
def test_values_of_every_kind_of_list_are_counted(tmp_path, monkeypatch, kind):
    is_map = pa.types.is_map(kind)
    values = [[(number, number) if is_map else number for number in range(50)], None]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": pa.array(values, kind)}), path)
    monkeypatch.setattr(parquet, "MAX_JSON_VALUES", 40)  # of two rows on average fewer
    refuse(path, r"row 1 has more than 40 values")


def test_a_column_whose_name_is_not_utf8_is_damage(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", text=["a"], other=[1])
    path.write_bytes(path.read_bytes().replace(b"other", b"oth\xffr"))
    refuse(path, r"a\.parquet is damaged or cut short after row 0 \('utf-8' codec")
    with pytest.raises(InputError, match=r"damaged or cut short after row 0 \('utf-8' codec"):
        list(open_texts(path).rows())
    documents, report = read_corpus(path)
    assert (documents, report.counts) == ([], {"damaged": 1})


@pytest.mark.parametrize("suffix", ["", *COMPRESS])
def test_parquet_outcomes(folder, suffix):
    values = ["One.\nTwo.", None, " ", "n\0l"]
    path = write_parquet(folder / "a.parquet", text=values, other=[1, 2, 3, 4])
    if suffix:
        path = write(folder / f"a.parquet{suffix}", COMPRESS[suffix](path.read_bytes()))
    documents, report = read_corpus(path)
    assert documents == [("One.", "Two."), ("nl",)]
    assert report.counts == {"missing-field": 1, "empty-document": 1, "nul": 1}
    assert report.places["missing-field"] == [f"{'in/' + path.name}:2"]


def test_parquet_without_the_column_or_of_another_type(folder):
    path = write_parquet(folder / "a.parquet", number=[1, 2, 3])
    documents, report = read_corpus(path)
    assert (documents, report.counts) == ([], {"missing-field": 3})
    assert report.places["missing-field"] == ["in/a.parquet (all rows)"]
    documents, report = read_corpus(path, text_column="number")
    assert (documents, report.counts) == ([], {"wrong-type": 3})


def test_parquet_with_invalid_utf8_or_a_dictionary(folder):
    raw = pa.array([b"b\xffd"]).view(pa.string())
    pq.write_table(pa.table({"text": raw}), folder / "a.parquet")
    documents, report = read_corpus(folder / "a.parquet")
    assert (documents, report.counts) == ([("b\ufffdd",)], {"invalid-utf8": 1})
    pq.write_table(pa.table({"text": pa.array(["x y"]).dictionary_encode()}), folder / "b.parquet")
    assert read_corpus(folder / "b.parquet")[0] == [("x y",)]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1], pa.timestamp("ns")),
        pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
        pa.ListArray.from_arrays([0, 1], pa.array([b"b\xffd"]).view(pa.string())),
    ],
    ids=["time", "date", "list"],
)
def test_a_parquet_column_of_anything_but_text_is_never_converted(folder, column):
    pq.write_table(pa.table({"text": column}), folder / "a.parquet")
    documents, report = read_corpus(folder / "a.parquet")
    assert (documents, report.counts) == ([], {"wrong-type": 1})
    assert report.places["wrong-type"] == ["in/a.parquet (all rows)"]


@pytest.mark.parametrize("kind", ["large_string", "string_view", "binary", "binary_view", "null"])
def test_a_parquet_column_of_any_type_of_text_is_read(folder, kind):
    values = [None, None] if kind == "null" else ["One.", None]
    pq.write_table(pa.table({"text": pa.array(values, getattr(pa, kind)())}), folder / "a.parquet")
    documents, report = read_corpus(folder / "a.parquet")
    assert documents == [(value,) for value in values if value]
    assert report.counts == {"missing-field": values.count(None)}


@pytest.mark.parametrize("cause", ["no folder", "full"])
def test_a_temporary_copy_that_cannot_be_written_is_no_fault_of_the_source(
    folder, monkeypatch, cause
):
    packed = gzip.compress(write_parquet(folder / "a", text=["One."]).read_bytes())
    path = write(folder / "a.parquet.gz", packed)
    if cause == "full":
        if not Path("/dev/full").exists():
            pytest.skip("this system has no device that is always full")
        monkeypatch.setattr(tempfile, "TemporaryFile", partial(Path("/dev/full").open, "w+b"))
    else:
        monkeypatch.setattr(tempfile, "tempdir", str(folder / "nowhere"))
    with pytest.raises(StorageError, match=r"copy of in/a\.parquet\.gz .* TMPDIR"):
        read_corpus(path)


@pytest.mark.parametrize("cut", [slice(0, -10), slice(10, None), slice(0, 3)])
def test_damaged_parquet_is_counted(folder, cut):
    path = write_parquet(folder / "a.parquet", text=["One."] * 1000)
    documents, report = read_corpus(write(path, path.read_bytes()[cut]))
    assert (documents, report.counts) == ([], {"damaged": 1})
    assert report.places["damaged"][0].startswith("in/a.parquet (")


def test_a_footer_of_too_many_row_groups_is_never_parsed(folder, monkeypatch):
    path = write_parquet(folder / "a.parquet", text=["One.", "Two."])
    size_bytes = int.from_bytes(path.read_bytes()[-8:-4], "little")
    monkeypatch.setattr(parquet, "MAX_FOOTER_BYTES", size_bytes)
    assert len(read_corpus(path)[0]) == 2
    monkeypatch.setattr(parquet, "MAX_FOOTER_BYTES", size_bytes - 1)
    monkeypatch.setattr(pq, "ParquetFile", lambda *_: pytest.fail("it was parsed"))
    documents, report = read_corpus(path)
    assert (documents, report.counts) == ([], {"damaged": 1})
    assert "write it with larger row groups" in report.places["damaged"][0]


def test_a_dictionary_does_not_make_a_batch_larger_than_may_be(folder, monkeypatch):
    """One text of a dictionary for all rows: a file of some bytes, and of gigabytes when read."""
    path = write_parquet(folder / "a.parquet", text=["cat " * 1000] * 50)
    rows: list[int] = []
    iterate = pq.ParquetFile.iter_batches

    def note(self, batch_size, **options):
        rows.append(batch_size)
        return iterate(self, batch_size, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", note)
    monkeypatch.setattr(parquet, "BATCH_BYTES", 20_000)
    assert len(read_corpus(path)[0]) == 50
    assert rows[0] * 4000 <= 20_000


def test_a_row_as_long_as_no_record_may_be_is_counted(folder, monkeypatch):
    path = write_parquet(folder / "a.parquet", text=["One.", "Two. " * 9, "Three."])
    monkeypatch.setattr(corpus_rows, "MAX_ROW_BYTES", 20)
    documents, report = read_corpus(path)
    assert documents == [("One.",), ("Three.",)]
    assert report.places["long-record"] == ["in/a.parquet:2"]
