"""Files of one JSON value: a list of objects, SQuAD's articles, or in truth JSONL.

Which of them a file is follows from its content, so `.json` needs no other name.
"""

import io
from collections.abc import Iterator
from typing import Any, BinaryIO

from bertkit.base.errors import DamagedFileError, InputError
from bertkit.base.files import parse_json
from bertkit.data.tables.decoder import DEFAULT_FIELD, RowDecoder, show_names
from bertkit.data.tables.formats import jsonl, squad
from bertkit.data.tables.formats.jsonl import KINDS
from bertkit.data.tables.record import Record, Rows, list_columns


def read_rows(stream: BinaryIO, decoder: RowDecoder) -> Rows:
    """Read a record for each object of a list, each question of SQuAD, or each line of JSONL."""
    content = squad.read_whole(stream, decoder)
    if has_objects_in_lines(content):
        decoder.report.num_bytes -= len(content)  # lines are counted as they are read
        return jsonl.read_rows(io.BytesIO(content), decoder)
    file = squad.parse_file(content, decoder)
    if squad.is_squad(file) and not decoder.texts_only:
        records = squad.count_undecodable(squad.read_articles(file["data"], decoder), decoder)
        return Rows(squad.COLUMNS, records)
    rows = find_rows(file, decoder)
    if decoder.texts_only:
        return Rows((DEFAULT_FIELD,), _read_texts(rows, decoder))
    records = squad.count_undecodable(_read_objects(rows, decoder), decoder)
    columns = list_columns(values for values in rows if isinstance(values, dict))
    return Rows(columns, records, len(rows))


def has_objects_in_lines(content: bytes) -> bool:
    """Whether the first line with content is an object, and another line follows."""
    first, _, rest = content.lstrip().partition(b"\n")
    if not first.startswith(b"{") or not rest.strip():
        return False
    try:
        return isinstance(parse_json(first, "the first line"), dict)
    except DamagedFileError:
        return False


def find_rows(file: Any, decoder: RowDecoder) -> list[Any]:
    """Return the list of rows: the file itself, or the only list of objects in an object."""
    if file is None:
        return []
    if isinstance(file, list):
        return file
    if isinstance(file, dict):
        lists = {
            name: value
            for name, value in file.items()
            if isinstance(value, list) and value and all(isinstance(one, dict) for one in value)
        }
        if len(lists) == 1:
            (rows,) = lists.values()
            return rows
        raise InputError(
            f"{decoder.name} is an object with {show_names(file) or 'nothing in it'}, and rows are"
            " expected: a list of objects, SQuAD's articles, or an object a line"
        )
    raise InputError(f"{decoder.name} has {KINDS.get(type(file), 'a single value')}, and no rows")


def _read_objects(rows: list[Any], decoder: RowDecoder) -> Iterator[Record]:
    for number, values in enumerate(rows, start=1):
        decoder.where = f"row {number:,}"
        if not isinstance(values, dict):
            kind = KINDS.get(type(values), "a single value")
            decoder.finish_row(f"{decoder.place} has {kind} where an object should be")
            continue
        decoder.finish_row()
        yield Record(values, decoder.place)


def _read_texts(rows: list[Any], decoder: RowDecoder) -> Iterator[Record]:
    """Yield a text for each row, a string or an object with one; the first determines the field."""
    column = None
    for value in rows:
        id_of = {}
        if isinstance(value, dict):
            column = column or decoder.choose_column(list(value))
            id_of = decoder.name_id(value)
            value = jsonl.take_field(value, column, decoder)
        if value is not None and not isinstance(value, str):
            kind = KINDS.get(type(value), "a number")
            raise InputError(f"{decoder.place} has {kind} where a text should be; quote it")
        decoder.finish_row()
        yield Record({DEFAULT_FIELD: value or "", **id_of}, decoder.place)
