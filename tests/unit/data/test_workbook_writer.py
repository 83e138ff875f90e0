"""Workbooks that are written: what stays a number, what is no formula, and what doesn't fit."""

import errno
import gc
import math
import re
import sys
import warnings
import zipfile

import openpyxl
import pytest
from tests.unit.data.test_writers import ROWS, write

from bertkit.base.errors import InputError, MissingExtraError, StorageError
from bertkit.base.extras import describe_install
from bertkit.base.files import DurableStream
from bertkit.data.tables.records import open_records
from bertkit.data.writers import check_output


def test_a_workbook_has_numbers_as_numbers_and_all_else_as_text(tmp_path):
    odd = ["=1+1", "+1", "-1", "@a", "http://x", "a\r\n\x07_x0041_\ufffe", " a ", 10**20, math.inf]
    rows = [*ROWS, *({"id": number, "text": text} for number, text in enumerate(odd))]
    path = write(tmp_path / "a.xlsx", rows)
    sheet = openpyxl.load_workbook(path).active
    assert [cell.value for cell in sheet[2]] == [7, 'a "film", long', 4.5, '["x"]', "true"]
    assert [cell.value for cell in sheet[3]] == [8, None, 3, None, "false"]
    assert {cell.data_type for (cell,) in sheet["B4:B12"]} == {"s"}
    assert not any(cell.hyperlink for (cell,) in sheet["B4:B12"])
    table = open_records(path)
    found = [record.values["text"] for record in table.records()][2:]
    shown = ["a\r\n\x07_x0041_\ufffd" if "\ufffe" in str(one) else str(one) for one in odd]
    assert found == shown


def test_a_workbook_that_is_read_and_written_keeps_its_numbers(tmp_path):
    first = write(tmp_path / "a.xlsx", [{"text": "1", "n": 1}, {"text": "b", "n": 0.5}])
    second = tmp_path / "b.xlsx"
    write(second, (dict(one.values) for one in open_records(first).records()))
    assert second.read_bytes() == first.read_bytes()  # whenever they are written
    for name in ("c.jsonl", "c.parquet"):
        path = write(tmp_path / name, (dict(one.values) for one in open_records(first).records()))
        assert [one.values["n"] for one in open_records(path).records()] == ["1", "0.5"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"a": "x"}, {"a": "x" * 32_768}], "row 2 doesn't fit into a sheet"),
        ([{"a": "\U0001f600" * 16_384}], "row 1 doesn't fit .* 32,767 characters"),
        ([{str(n): 1 for n in range(16_385)}], "row 0 doesn't fit .* 16,384 columns"),
    ],
)
def test_what_a_sheet_does_not_hold_is_told(tmp_path, rows, message):
    with pytest.raises(InputError, match=f"{message}.*; write .csv"):
        write(tmp_path / "a.xlsx", rows)
    assert list(tmp_path.iterdir()) == []


def test_a_workbook_that_does_not_fit_on_the_disk_is_told(tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for place in (DurableStream, zipfile.ZipFile):
        with monkeypatch.context() as patch, warnings.catch_warnings(action="ignore"):
            patch.setattr(place, "write", fail)
            with pytest.raises(StorageError, match=r"a\.xlsx can't be written: No space left on"):
                write(tmp_path / "a.xlsx", ROWS)
            gc.collect()  # XlsxWriter leaves a temporary file open
        assert list(tmp_path.iterdir()) == []


def test_a_workbook_needs_its_extra_before_anything_is_done(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(MissingExtraError, match=re.escape(describe_install("xlsx"))):
        check_output(tmp_path / "a.xlsx", overwrite=False)
