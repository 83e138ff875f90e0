"""Rows of Parquet as Python values, whatever their columns hold."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.data.tables.labeled import read, read_values, refuse

from bertkit.base.errors import InputError
from bertkit.data.tables.formats import parquet
from bertkit.data.tables.formats import parquet as reader
from bertkit.data.tables.texts import open_texts


def write_table(folder, **columns):
    path = folder / "a.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_values_are_pythons(tmp_path):
    path = write_table(
        tmp_path,
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
    monkeypatch.setattr(reader, "ROWS_AT_ONCE", 3)
    path = write_table(tmp_path, n=list(range(10)))
    found, _ = read(path)
    assert [record.place for record in found] == [f"{path}, row {n + 1}" for n in range(10)]
    assert [record.values["n"] for record in found] == list(range(10))


def test_a_value_that_python_cannot_hold_is_a_broken_row(tmp_path):
    wrong = pa.array([[b"x"], [b"\xff"], [b"y"]])
    path = write_table(tmp_path, tags=wrong.cast(pa.list_(pa.binary())), n=[1, 2, 3])
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
    path = write_table(tmp_path, text=["a", "b" * 2000, "c"])
    monkeypatch.setattr(parquet, "MAX_ROW_BYTES", 3000)
    assert len(read_values(path)) == 3
    monkeypatch.setattr(parquet, "MAX_ROW_BYTES", 1000)
    refuse(path, r"a\.parquet, row 2 has more than 0 MiB, the limit for a row")


def test_lists_of_too_many_values_are_refused_before_they_are_made(tmp_path, monkeypatch):
    """Nulls take no bytes, neither in the file nor in an array of Arrow."""
    path = write_table(tmp_path, n=[[None], [None] * 50, None], more=[[[1] * 4]] * 3)
    monkeypatch.setattr(parquet, "MAX_JSON_VALUES", 60)
    assert len(read_values(path)) == 3
    monkeypatch.setattr(parquet, "MAX_JSON_VALUES", 20)
    refuse(path, r"a\.parquet, row 2 has more than 20 values, the limit for a row")
    monkeypatch.setattr(parquet, "MAX_JSON_VALUES", 10)
    monkeypatch.setattr(parquet, "read_batches", lambda *_: pytest.fail("it was decoded"))
    refuse(path, r"the column n\S* has 52 values in 3 rows; the limit for a row is 10")


def test_rows_with_long_lists_are_decoded_a_few_at_a_time(tmp_path, monkeypatch):
    path = write_table(tmp_path, n=[[None] * 50] * 6)
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
    values = [[(number, number) if is_map else number for number in range(50)]]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": pa.array(values, kind)}), path)
    monkeypatch.setattr(parquet, "_check_lists", lambda *_: 1)
    monkeypatch.setattr(parquet, "MAX_JSON_VALUES", 40)
    refuse(path, r"row 1 has more than 40 values")


def test_a_column_whose_name_is_not_utf8_is_damage(tmp_path):
    path = write_table(tmp_path, text=["a"], other=[1])
    path.write_bytes(path.read_bytes().replace(b"other", b"oth\xffr"))
    refuse(path, r"a\.parquet is damaged or cut short after row 0 \('utf-8' codec")
    with pytest.raises(InputError, match=r"damaged or cut short after row 0 \('utf-8' codec"):
        list(open_texts(path).rows())
