"""Workbooks (.xlsx): the first visible sheet, whose first row has the names of the columns.

A cell is a text, as in CSV: a number without needless digits, a date as 2026-11-28, with its time
if it has one, true or false; an empty cell is an empty text. A formula has the result that is
stored with it: nothing is computed, no link is followed. Blank rows are left out; where row n is
text n, only those at the end are.

expat parses the XML in pieces, because libraries don't take bounded memory for a hostile workbook:
openpyxl 3.1.5 holds a row of any length whole, and calamine 0.9.1 allocates all cells between the
first and the last one, so that two that are far apart end the process.

Source: ECMA-376, Office Open XML file formats, part 1, chapter 18.
"""

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple
from xml.parsers import expat

from bertkit.base.errors import BertkitError, InputError, pluralize
from bertkit.base.remote import RemoteFile
from bertkit.data.tables.decoder import MAX_ROW_BYTES, RowDecoder
from bertkit.data.tables.formats.parquet import open_seekable
from bertkit.data.tables.formats.separated import SHOWN_CHARS, find_columns
from bertkit.data.tables.record import NumberCell, Record, Rows
from bertkit.reports.text import show

MAX_SHEET_BYTES = 1 << 30  # of XML, which is read in pieces
MAX_HELD_BYTES = 256 << 20  # of another part, such as the texts that cells share
MAX_ROWS, MAX_COLUMNS = 1 << 20, 1 << 14  # Excel's own
READ_BYTES, TOKEN_LIMIT_BYTES, MAX_DEPTH = 1 << 16, 1 << 20, 100
ZIP_START = b"PK\x03\x04"
FAULTS = (
    *(zipfile.BadZipFile, zlib.error, expat.ExpatError, EOFError, LookupError, ValueError),
    *(NotImplementedError, RuntimeError),  # of zipfile: compressed otherwise, or encrypted
)
CELL, FORMULA, ROW, SHARED_TEXT = "row/c", "c/f", "sheetData/row", "sst/si"
ELEMENTS = frozenset(  # each with its parent
    {CELL, FORMULA, ROW, SHARED_TEXT, "sheets/sheet", "workbook/workbookPr"}
    | {"Relationships/Relationship", "numFmts/numFmt", "cellXfs/xf"}
)
# A character that XML can't have, or a line end; never half of a character.
ESCAPED = re.compile("_x(?![dD][89a-fA-F])([0-9a-fA-F]{4})_")
REFERENCE = re.compile(r"([A-Z]{1,3})\d{1,7}")
DATE_FORMATS = frozenset({*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)})
# A date's code has a letter of its units outside of quotes and brackets, as that of a duration has.
QUOTED, DURATION = re.compile(r'"[^"]*"|\[[^\]]*\]|[\\_*].'), re.compile(r"\[(h+|m+|s+)\]")
EXACT = 1 << 53  # whole numbers below are those that were typed
FIRST_DAYS = {False: "1899-12-30", True: "1904-01-01"}
MAX_DAYS = 2_958_466  # until the year 10,000


class Element(NamedTuple):
    """An element of XML: its parent and its name, its attributes, and the text of a cell."""

    path: str
    attributes: Mapping[str, str]
    text: str


@contextmanager
def open_workbook(path: Path | RemoteFile | None, decoder: RowDecoder) -> Iterator[BinaryIO]:
    """Open a seekable file; errors while it is read become messages about the file."""
    with open_seekable(path, decoder) as stream:
        stream.seek(0)
        if stream.read(len(ZIP_START)) != ZIP_START:
            message = "isn't a workbook (.xlsx), or has a password; save it as .xlsx or as CSV"
            decoder.refuse("damaged", "it isn't a workbook", message)
        decoder.position, decoder.needs_mark = stream.tell, True
        try:
            yield stream
        except BertkitError:  # many are a ValueError
            raise
        except FAULTS as error:
            decoder.refuse_rest("damaged", str(error))


def read_rows(stream: BinaryIO, decoder: RowDecoder) -> Rows:
    """Read a record for each row of the first visible sheet."""
    rows = _Sheet(zipfile.ZipFile(stream), decoder).rows()
    found = next(rows, None)
    if found is None:
        return Rows((), iter(()))
    number, first = found
    if not decoder.layout.header:
        rows, number = chain([found], rows), number - 1
    columns, chosen = find_columns(first, decoder, "insert a row with a name above it")
    return Rows(chosen, _name_cells(rows, columns, number, decoder))


def _name_cells(
    rows: Iterator[tuple[int, list[str]]], columns: tuple[str, ...], last: int, decoder: RowDecoder
) -> Iterator[Record]:
    """Yield a record for each row below the last one that was read."""
    num_beside, first_beside = 0, ""
    for number, cells in rows:
        blank = ([""] for _ in range(last + 1, number) if decoder.texts_only)
        last = number
        for each in chain(blank, [cells]):
            decoder.where = f"row {number:,}"
            if any(each[len(columns) :]):
                num_beside, first_beside = num_beside + 1, first_beside or decoder.place
            each += [""] * (len(columns) - len(each))
            values = dict(zip(columns, each, strict=False))
            id_of = decoder.name_id(values)
            decoder.finish_row()
            yield Record({**values, **id_of}, decoder.place)
    if num_beside:
        decoder.report.notes.append(
            f"{pluralize(num_beside, 'row')} with cells beside the named columns, which aren't read"
            f" (first: {first_beside})"
        )


class _Sheet:
    """The first visible sheet of a workbook."""

    def __init__(self, archive: zipfile.ZipFile, decoder: RowDecoder) -> None:
        self._decoder = decoder
        names = [info.filename.replace("\\", "/").lower() for info in archive.infolist()]
        self._archive, self._parts = archive, dict(zip(names, archive.infolist(), strict=True))
        main = dict(self._refer("").values()).get("officeDocument", "xl/workbook.xml")
        referred, found = self._refer(main), list(self._read(main))
        sheets = [
            (element.attributes.get("name", ""), referred[element.attributes["id"]][1])
            for element in found
            if element.path == "sheets/sheet"
            and element.attributes.get("state", "visible") == "visible"
            and referred[element.attributes["id"]][0] == "worksheet"
        ]
        if not sheets:
            raise zipfile.BadZipFile("no sheet is visible")
        name, self._path = sheets[0]
        if others := [show(other, SHOWN_CHARS) for other, _ in sheets[1:]]:
            decoder.report.notes.append(
                f"the sheet {show(name, SHOWN_CHARS)} is read, and of {len(sheets):,} sheets only"
                f" this one; the next is {others[0]}"
            )
        modes = [one.attributes.get("date1904") for one in found if one.path.endswith("Pr")]
        self._first_day = FIRST_DAYS[bool(modes) and modes[0] in {"1", "true"}]
        parts = dict(referred.values())
        shared, styles = parts.get("sharedStrings"), parts.get("styles")
        self._texts = [each.text for each in self._read(shared)] if shared else []
        self._are_dates = _find_dates(self._read(styles)) if styles else []
        self._num_missing, self._first_missing = 0, ""  # results of formulas

    def _refer(self, part: str) -> dict[str, tuple[str, str]]:
        """Return the kinds and paths of the parts that a part refers to, by their ids."""
        folder, name = posixpath.split(part)
        found = self._read(posixpath.join(folder, "_rels", f"{name}.rels"))
        joined = ((one, posixpath.join("/", folder, one["Target"])) for _, one, _ in found)
        return {
            one["Id"]: (one["Type"].rpartition("/")[2], posixpath.normpath(path).lstrip("/"))
            for one, path in joined
            if one.get("TargetMode") != "External"
        }

    def _read(self, part: str, limit: int = MAX_HELD_BYTES) -> Iterator[Element]:
        """Yield the elements of a part, of which zipfile reads at most the size that it states."""
        info = self._parts.get(part.lower())
        if info is None:
            raise zipfile.BadZipFile(f"{show(part)} is missing")
        if info.file_size > limit:
            raise InputError(
                f"{self._decoder.name} has {info.file_size:,} bytes of XML in {show(part)}, and at"
                f" most {limit:,} are read; save it as CSV"
            )
        collector = _ElementCollector()
        with self._archive.open(info) as stream:
            while data := stream.read(READ_BYTES):
                yield from collector.feed(data)
        yield from collector.feed(b"", is_last=True)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the numbers and cells of rows that aren't blank, in the order of the sheet."""
        number = column = num_chars = 0
        cells, has_formula = list[str](), False
        for path, attributes, text in self._read(self._path, MAX_SHEET_BYTES):
            if path == FORMULA:
                has_formula = True
            elif path == CELL:
                column = _find_column(attributes.get("r"), column)
                cells += [""] * (column - len(cells))
                cells[column - 1] = value = self._read_cell(attributes, text, has_formula)
                num_chars, has_formula = num_chars + len(value), False
            elif path == ROW:
                before, number = number, int(attributes.get("r", number + 1))
                if not before < number <= MAX_ROWS:
                    raise ValueError(f"row {number:,} comes after row {before:,}")
                self._decoder.count_line(num_chars)
                if num_chars > MAX_ROW_BYTES:
                    self._decoder.refuse_line()
                if any(cells):
                    yield number, cells
                cells, column, num_chars = [], 0, 0
        if self._num_missing:
            self._decoder.report.notes.append(
                f"{pluralize(self._num_missing, 'cell')} without a result of its formula, or with"
                f" an error such as #NAME?, read as empty (first: {self._first_missing})"
            )

    def _read_cell(self, attributes: Mapping[str, str], text: str, has_formula: bool) -> str:
        kind = attributes.get("t", "n")
        if kind == "e" or (has_formula and not text and kind != "str"):
            self._first_missing = self._first_missing or attributes.get("r", "a cell")
            self._num_missing += 1
            return ""
        if kind == "s":
            return self._texts[int(text)]
        if kind == "b":
            return "true" if text.strip() in {"1", "true"} else "false"
        if kind != "n" or not text.strip():
            return text
        style = int(attributes.get("s", 0))
        number = float(text)
        if style < len(self._are_dates) and self._are_dates[style]:
            return self._write_date(number)
        if number.is_integer() and abs(number) < EXACT:
            return NumberCell(int(number))
        return NumberCell(number)

    def _write_date(self, days: float) -> str:
        """Return a day, with its time if that isn't midnight, or a time, which is a part of one."""
        if self._first_day == FIRST_DAYS[False] and days < 60:
            days += days >= 1  # Excel counts a 29 February 1900
        if not 0 <= days < MAX_DAYS:
            return NumberCell(days)
        import numpy as np

        found = np.datetime64(self._first_day) + np.timedelta64(round(days * 86_400_000), "ms")
        day, _, time = str(found).removesuffix(".000").partition("T")
        if 0 < days < 1:
            return time
        return day if time == "00:00:00" else f"{day} {time}"


def _find_column(reference: str | None, before: int) -> int:
    """Return the number of a cell's column, from 1, which is the next one if it isn't stated."""
    if reference is None:
        number = before + 1
    else:
        found, number = REFERENCE.fullmatch(reference), 0
        if found is None:
            raise ValueError(f"{show(reference, SHOWN_CHARS)} isn't a cell")
        for letter in found[1]:
            number = 26 * number + ord(letter) - ord("A") + 1
    if not before < number <= MAX_COLUMNS:
        raise ValueError(f"column {number:,} comes after column {before:,}")
    return number


def _find_dates(styles: Iterator[Element]) -> list[bool]:
    """Return whether the numbers of each cell format are dates or times."""
    dates, found = set(DATE_FORMATS), list[bool]()
    for path, attributes, _ in styles:
        number = int(attributes.get("numFmtId", 0))
        if path == "numFmts/numFmt":
            code = attributes.get("formatCode", "").lower()
            units = {*"dmyhs"} & {*QUOTED.sub("", code).partition(";")[0]}
            if units and DURATION.search(code) is None:
                dates.add(number)
        elif path == "cellXfs/xf":
            found.append(number in dates)
    return found


class _ElementCollector:
    """Collects elements from expat's events, with the texts of their `t` and `v`."""

    def __init__(self) -> None:
        self._found: list[Element] = []
        self._open: list[tuple[str, dict[str, str]]] = [("", {})]
        self._parts: list[str] = []
        self._num_chars = self._num_fed = 0
        self._is_text = False
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._take
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype

    def feed(self, data: bytes, *, is_last: bool = False) -> list[Element]:
        """Parse the next bytes, and return the elements that end in them."""
        self._parser.Parse(data, is_last)
        self._num_fed += len(data)
        if self._num_fed - self._parser.CurrentByteIndex > TOKEN_LIMIT_BYTES:
            raise expat.ExpatError("a tag of over 1 MiB isn't part of a workbook")
        found, self._found = self._found, []
        return found

    def _refuse_doctype(self, *_: object) -> None:
        raise expat.ExpatError("a document type isn't part of a workbook")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name, parent = name.rpartition(":")[2], self._open[-1][0]
        if len(self._open) > MAX_DEPTH:
            raise expat.ExpatError(f"more than {MAX_DEPTH} tags within each other")
        self._is_text = name in {"t", "v"} and parent != "rPh"  # which is how kanji are read
        self._open.append((name, attributes))

    def _take(self, data: str) -> None:
        if self._is_text:
            self._num_chars += len(data)
            if self._num_chars > MAX_ROW_BYTES:
                raise expat.ExpatError(f"a cell of over {MAX_ROW_BYTES >> 20} MiB")
            self._parts.append(data)

    def _end(self, _: str) -> None:
        name, attributes = self._open.pop()
        path, self._is_text = f"{self._open[-1][0]}/{name}", False
        if path not in ELEMENTS:
            return
        text = ""
        if path in {CELL, SHARED_TEXT}:
            text = "".join(self._parts)
            text = ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text
            self._parts, self._num_chars = [], 0
        plain = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        self._found.append(Element(path, plain, text))
