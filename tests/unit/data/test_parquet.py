"""Parquet: text in any type of column, and nothing else; copied where it must be."""

import gzip
import tempfile
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.data.corpora import COMPRESS, read, write, write_parquet

from bertkit.base.errors import StorageError
from bertkit.data import documents as corpus_rows
from bertkit.data.tables.formats import parquet


@pytest.mark.parametrize("suffix", ["", *COMPRESS])
def test_parquet_outcomes(folder, suffix):
    values = ["One.\nTwo.", None, " ", "n\0l"]
    path = write_parquet(folder / "a.parquet", text=values, other=[1, 2, 3, 4])
    if suffix:
        path = write(folder / f"a.parquet{suffix}", COMPRESS[suffix](path.read_bytes()))
    documents, report = read(path)
    assert documents == [("One.", "Two."), ("nl",)]
    assert report.counts == {"missing-field": 1, "empty-document": 1, "nul": 1}
    assert report.places["missing-field"] == [f"{'in/' + path.name}:2"]


def test_parquet_without_the_column_or_of_another_type(folder):
    path = write_parquet(folder / "a.parquet", number=[1, 2, 3])
    documents, report = read(path)
    assert (documents, report.counts) == ([], {"missing-field": 3})
    assert report.places["missing-field"] == ["in/a.parquet (all rows)"]
    documents, report = read(path, text_column="number")
    assert (documents, report.counts) == ([], {"wrong-type": 3})


def test_parquet_with_invalid_utf8_or_a_dictionary(folder):
    raw = pa.array([b"b\xffd"]).view(pa.string())
    pq.write_table(pa.table({"text": raw}), folder / "a.parquet")
    documents, report = read(folder / "a.parquet")
    assert (documents, report.counts) == ([("b\ufffdd",)], {"invalid-utf8": 1})
    pq.write_table(pa.table({"text": pa.array(["x y"]).dictionary_encode()}), folder / "b.parquet")
    assert read(folder / "b.parquet")[0] == [("x y",)]


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
    documents, report = read(folder / "a.parquet")
    assert (documents, report.counts) == ([], {"wrong-type": 1})
    assert report.places["wrong-type"] == ["in/a.parquet (all rows)"]


@pytest.mark.parametrize("kind", ["large_string", "string_view", "binary", "binary_view", "null"])
def test_a_parquet_column_of_any_type_of_text_is_read(folder, kind):
    values = [None, None] if kind == "null" else ["One.", None]
    pq.write_table(pa.table({"text": pa.array(values, getattr(pa, kind)())}), folder / "a.parquet")
    documents, report = read(folder / "a.parquet")
    assert documents == [(value,) for value in values if value]
    assert report.counts == {"missing-field": values.count(None)}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_truncated_copy_of_parquet_is_counted_once(folder, suffix):
    packed = COMPRESS[suffix](write_parquet(folder / "a", text=["One."] * 1000).read_bytes())
    documents, report = read(write(folder / f"a.parquet{suffix}", packed[:-20]))
    assert (documents, report.counts) == ([], {"truncated": 1})


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
        read(path)


@pytest.mark.parametrize("cut", [slice(0, -10), slice(10, None), slice(0, 3)])
def test_damaged_parquet_is_counted(folder, cut):
    path = write_parquet(folder / "a.parquet", text=["One."] * 1000)
    documents, report = read(write(path, path.read_bytes()[cut]))
    assert (documents, report.counts) == ([], {"damaged": 1})
    assert report.places["damaged"][0].startswith("in/a.parquet (")


def test_a_column_whose_name_is_not_utf8_is_damage(folder):
    path = write_parquet(folder / "a.parquet", text=["One."], other=[1])
    documents, report = read(write(path, path.read_bytes().replace(b"other", b"oth\xffr")))
    assert (documents, report.counts) == ([], {"damaged": 1})


def test_a_footer_of_too_many_row_groups_is_never_parsed(folder, monkeypatch):
    path = write_parquet(folder / "a.parquet", text=["One.", "Two."])
    size_bytes = int.from_bytes(path.read_bytes()[-8:-4], "little")
    monkeypatch.setattr(parquet, "MAX_FOOTER_BYTES", size_bytes)
    assert len(read(path)[0]) == 2
    monkeypatch.setattr(parquet, "MAX_FOOTER_BYTES", size_bytes - 1)
    monkeypatch.setattr(pq, "ParquetFile", lambda *_: pytest.fail("it was parsed"))
    documents, report = read(path)
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
    assert len(read(path)[0]) == 50
    assert rows[0] * 4000 <= 20_000


def test_a_row_as_long_as_no_record_may_be_is_counted(folder, monkeypatch):
    path = write_parquet(folder / "a.parquet", text=["One.", "Two. " * 9, "Three."])
    monkeypatch.setattr(corpus_rows, "MAX_ROW_BYTES", 20)
    documents, report = read(path)
    assert documents == [("One.",), ("Three.",)]
    assert report.places["long-record"] == ["in/a.parquet:2"]
