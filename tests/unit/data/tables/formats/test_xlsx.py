"""Workbooks are read as spreadsheet programs show them, and hostile ones in bounded memory."""

import io
import tracemalloc
import zipfile
from datetime import date, datetime, time

import openpyxl
import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.utils.datetime import CALENDAR_MAC_1904
from tests.unit.data.tables.formats.workbooks import HEADER, PARTS, write_parts

from bertkit.base.errors import InputError
from bertkit.data.tables.records import open_records
from bertkit.data.tables.settings import CorpusSettings, RecordSettings
from bertkit.data.tables.texts import open_texts


def write_rows(path, *rows, **settings):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for name, value in settings.items():
        setattr(book, name, value)
    book.save(path)
    return path


def read(path, **settings):
    table = open_records(path, RecordSettings(**settings))
    return table, [dict(record.values) for record in table.records()]


def test_cells_are_texts_as_in_csv(tmp_path):
    moment, day = datetime(2026, 11, 28, 14, 3), date(1900, 2, 28)  # noqa: DTZ001
    rows = (
        ("text", "n", "share", "day", "at", "is", "none", None),
        ("=not a formula", 7, 0.1, day, moment, True, None),
        (" 5 ", 1e15, -2.5e-7, moment.date(), time(9, 30), False, ""),
    )
    write_rows(tmp_path / "a.xlsx", *rows)
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    book.active["A2"].data_type = "s"
    book.save(tmp_path / "a.xlsx")
    table, found = read(tmp_path / "a.xlsx")
    names = ("text", "n", "share", "day", "at", "is", "none")
    assert table.columns == names
    first = ("=not a formula", "7", "0.1", "1900-02-28", "2026-11-28 14:03:00", "true", "")
    assert found[0] == dict(zip(names, first, strict=True))
    second = (" 5 ", "1000000000000000", "-2.5e-07", "2026-11-28", "09:30:00", "false", "")
    assert found[1] == dict(zip(names, second, strict=True))
    assert table.csv_style.has_mark


def test_days_are_counted_as_the_workbook_says(tmp_path):
    row = [date(2020, 2, 29)]
    assert read(write_rows(tmp_path / "a.xlsx", ["day"], row))[1] == [{"day": "2020-02-29"}]
    path = write_rows(tmp_path / "b.xlsx", ["day"], row, epoch=CALENDAR_MAC_1904)
    assert read(path)[1] == [{"day": "2020-02-29"}]


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("0.00", "1.5"),
        ("dd. mmm yyyy", "1900-01-01 12:00:00"),
        ('0 "days"', "1.5"),
        ("[Red]0", "1.5"),
        ("[h]:mm", "1.5"),
        ("General", "1.5"),
        ("#\\h", "1.5"),
    ],
)
def test_a_number_is_a_day_if_its_format_has_units_of_one(tmp_path, code, shown):
    book = openpyxl.Workbook()
    book.active.append(["n"])
    book.active.append([1.5])
    book.active["A2"].number_format = code
    book.save(tmp_path / "a.xlsx")
    assert read(tmp_path / "a.xlsx")[1] == [{"n": shown}]


def test_the_first_visible_sheet_is_read_and_others_are_told(tmp_path):
    book = openpyxl.Workbook()
    book.active.sheet_state = "hidden"
    for name in ("data", "notes", "more"):
        book.create_sheet(name).append(["text"])
    book["data"].append(["read"])
    book.save(tmp_path / "a.xlsx")
    table, found = read(tmp_path / "a.xlsx")
    assert found == [{"text": "read"}]
    assert table.report.notes == [
        "the sheet data is read, and of 3 sheets only this one; the next is notes"
    ]


def test_what_is_left_out_is_told(tmp_path, monkeypatch):
    rows = [["text", "label"], ["a", "=1+1"], ["b", "x", "aside"], [None, None], ["c", "y"]]
    write_rows(tmp_path / "a.xlsx", *rows)
    monkeypatch.chdir(tmp_path)
    table, found = read("a.xlsx")
    assert [row["label"] for row in found] == ["", "x", "y"]
    empty, beside = table.report.notes
    assert empty == (
        "1 cell without a result of its formula, or with an error such as #NAME?, read as empty"
        " (first: B2)"
    )
    assert beside.endswith("beside the named columns, which aren't read (first: a.xlsx, row 3)")


def test_row_n_is_text_n_though_rows_are_blank(tmp_path):
    rows = [["text", "id"], ["a", 1], [None, None], [None, 3], ["b", 4], [None, ""], ["", ""]]
    path = write_rows(tmp_path / "a.xlsx", *rows)
    settings = CorpusSettings(text_column="text", id_column="id")
    found = [(row.text, row.id) for row in open_texts(path, settings).rows()]
    assert found == [("a", "1"), ("", ""), ("", "3"), ("b", "4")]


def test_texts_may_have_runs_readings_and_escapes(tmp_path):
    rich = CellRichText("a ", TextBlock(InlineFont(b=True), "bold"), " word")
    path = write_rows(tmp_path / "a.xlsx", ["text"], [rich])
    assert read(path)[1] == [{"text": "a bold word"}]
    shared = "<sst><si><r><t>x_x000D_\n_x005F_x0041_</t></r><rPh><t>yomi</t></rPh></si></sst>"
    rows = f'{HEADER}<row><c t="s"><v>0</v></c></row>'
    assert read(write_parts(tmp_path / "b.xlsx", rows, **{"shared.xml": shared}))[1] == [
        {"text": "x\r\n_x0041_"}
    ]


def test_a_header_may_be_missing_and_a_name_twice(tmp_path):
    path = write_rows(tmp_path / "a.xlsx", ["a", "x"], ["b", "y"])
    assert read(path, header=False)[1] == [{"1": "a", "2": "x"}, {"1": "b", "2": "y"}]
    with pytest.raises(InputError, match=r"a\.xlsx has the column x twice; rename one of them"):
        open_records(write_rows(tmp_path / "a.xlsx", ["x", "x"], ["b", "y"]))
    assert read(write_rows(tmp_path / "b.xlsx"))[0].columns is None


HOSTILE = {
    "a cell far out": (f'{HEADER}<row><c r="XFE2"><v>1</v></c></row>', "column 16,385 comes"),
    "many cells": (f"{HEADER}<row>{'<c/>' * (1 << 18)}</row>", "column 16,385 comes"),
    "rows that go back": (f'<row r="5"/>{HEADER}<row r="2"/>', "row 2 comes after row 6"),
    "a row far down": (f'{HEADER}<row r="1048577"/>', "row 1,048,577 comes after row 1"),
    "a text that isn't there": (f'{HEADER}<row><c t="s"><v>7</v></c></row>', "out of range"),
    "tags in tags": ("<a>" * 200 + "</a>" * 200, "more than 100 tags"),
    "a long tag": (f'<row a="{"x" * (4 << 20)}"/>', "a tag of over 1 MiB"),
    "a long text": (f"{HEADER}<row><c><v>{'x' * (17 << 20)}", "a cell of over 16 MiB"),
    "an end too early": (f"{HEADER}<row><c><v>", "mismatched tag"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_sheet_is_refused_in_bounded_memory(tmp_path, name):
    rows, message = HOSTILE[name]
    path = write_parts(tmp_path / "a.xlsx", rows)
    tracemalloc.start()
    with pytest.raises(InputError, match=rf"a\.xlsx is damaged or cut short .*{message}"):
        read(path)
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()


def test_openpyxl_holds_a_row_whole_and_bertkit_does_not(tmp_path):
    """Which is why workbooks are read by code of our own."""
    rows = HOSTILE["many cells"][0]  # a mebibyte
    name = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(write_rows(tmp_path / "a.xlsx", [])) as archive:
        parts = {each: archive.read(each).decode() for each in archive.namelist()}
    parts[name] = (
        f"{parts[name].partition('<dimension')[0]}<sheetData>{rows}</sheetData></worksheet>"
    )
    write_parts(tmp_path / "a.xlsx", "", **parts)
    tracemalloc.start()
    book = openpyxl.load_workbook(tmp_path / "a.xlsx", read_only=True)
    assert len(list(book.active.iter_rows())) == 2
    book.close()
    peaks = [tracemalloc.get_traced_memory()[1]]
    tracemalloc.stop()
    tracemalloc.start()
    with pytest.raises(InputError, match="column 16,385 comes"):
        read(tmp_path / "a.xlsx")
    peaks.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
    assert peaks[0] > 50 << 20
    assert peaks[1] < 10 << 20


def test_a_workbook_of_few_bytes_that_unpacks_to_many_is_refused(tmp_path):
    path = write_parts(tmp_path / "a.xlsx", HEADER)
    with zipfile.ZipFile(path, "a") as archive:
        archive.getinfo("shared.xml").file_size = 257 << 20
        archive.writestr("more.xml", "")
    with pytest.raises(
        InputError, match=r"of XML in shared\.xml, and at most 268,435,456 are read"
    ):
        open_records(path)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"book.xml": '<!DOCTYPE a [<!ENTITY b "c">]><workbook>&b;</workbook>'}, "a document type"),
        ({"book.xml": "<workbook/>"}, "no sheet is visible"),
        ({"_rels/book.xml.rels": "<Relationships/>"}, "'r1'"),
    ],
)
def test_a_workbook_without_what_it_needs_is_refused(tmp_path, parts, message):
    with pytest.raises(InputError, match=message):
        open_records(write_parts(tmp_path / "a.xlsx", HEADER, **parts))


def test_what_lies_outside_of_the_file_is_not_looked_at(tmp_path):
    outside = (
        '<Relationship Id="r3" Type="x/styles" Target="http://x/" TargetMode="External"/>'
        '<Relationship Id="r4" Type="x/externalLink" Target="../../../etc/passwd"/>'
    )
    related = PARTS["_rels/book.xml.rels"].replace("</Rel", f"{outside}</Rel", 1)
    rows = f'{HEADER}<row><c t="s"><v>0</v></c></row>'
    path = write_parts(tmp_path / "a.xlsx", rows, **{"_rels/book.xml.rels": related})
    assert read(path)[1] == [{"text": "one"}]


@pytest.mark.parametrize("content", [b"text,label\na,b\n", b"\xd0\xcf\x11\xe0" + bytes(600), b""])
def test_another_file_is_no_workbook(tmp_path, content):
    (tmp_path / "a.xlsx").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.xlsx isn't a workbook \(\.xlsx\), or has a password"):
        open_records(tmp_path / "a.xlsx")


def test_standard_input_is_read(tmp_path, monkeypatch):
    content = write_rows(tmp_path / "a.xlsx", ["text"], ["one"]).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert read("-", format="xlsx")[1] == [{"text": "one"}]
