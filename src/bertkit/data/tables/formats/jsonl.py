"""JSONL: one object per line; where only texts are read, a line may also be a string.

Objects may have different keys. Those of the first thousands of rows are the columns.
"""

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO

from bertkit.base.errors import DamagedFileError, InputError
from bertkit.base.files import MAX_JSON_VALUES, parse_json
from bertkit.data.tables.decoder import DEFAULT_FIELD, RowDecoder, show_names
from bertkit.data.tables.formats.separated import read_lines
from bertkit.data.tables.record import Record, Rows, list_columns, look_up

KINDS = {dict: "an object", list: "an array", bool: "true or false"}
MAX_FIRST_ROWS, MAX_FIRST_BYTES = 4096, 16 << 20  # rows that are read ahead for their keys
HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")


def read_rows(stream: BinaryIO, decoder: RowDecoder) -> Rows:
    """Read a record for each object; skip blank lines, count other lines as broken."""
    if decoder.texts_only:
        return Rows((DEFAULT_FIELD,), _read_texts(stream, decoder))
    records = _read_objects(stream, decoder)
    first = []
    for record in records:
        first.append(record)
        if len(first) == MAX_FIRST_ROWS or decoder.report.num_bytes >= MAX_FIRST_BYTES:
            break
    return Rows(list_columns(record.values for record in first), chain(first, records))


def _read_texts(stream: BinaryIO, decoder: RowDecoder) -> Iterator[Record]:
    """Yield a text for each line, empty for blank lines and nulls.

    The first object determines which field has the text; a later one may not contradict it.
    """
    column = None
    for line in read_lines(stream, decoder):
        try:
            value = json.loads(decoder.decode(line)) if line.strip() else None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{decoder.place} isn't JSON ({error}); correct the line") from None
        id_of = {}
        if isinstance(value, dict):
            column = column or decoder.choose_column(list(value))
            id_of = decoder.name_id(value)
            value = take_field(value, column, decoder)
        if value is not None and not isinstance(value, str):
            kind = KINDS.get(type(value), "a number")
            raise InputError(f"{decoder.place} has {kind} where a text should be; quote it")
        text = decoder.replace_surrogates(value or "")
        decoder.finish_row()
        yield Record({DEFAULT_FIELD: text, **id_of}, decoder.place)


def take_field(values: dict[str, Any], column: str, decoder: RowDecoder) -> Any:
    """Return the value of a field.

    It is an `InputError` if there is none, or if the field is the only one of the first row, and
    this row has another one that is named as texts are.
    """
    if decoder.column is None and column != DEFAULT_FIELD and DEFAULT_FIELD in values:
        raise InputError(
            f"{decoder.place} has a field {DEFAULT_FIELD}, and the first row has only {column};"
            " name the one that has the text with --text-column"
        )
    try:
        return look_up(values, column)
    except KeyError:
        has = f"it has {show_names(values)}" if values else "it is empty"
        raise InputError(f"{decoder.place} has no field {column}; {has}") from None


def _read_objects(stream: BinaryIO, decoder: RowDecoder) -> Iterator[Record]:
    for line in read_lines(stream, decoder):
        if not line.strip():
            continue
        decoder.set_line(decoder.num_lines)
        try:
            values = parse_values(line, decoder.place, decoder)
        except DamagedFileError as error:
            decoder.finish_row(str(error))
            continue
        if not isinstance(values, dict):
            kind = KINDS.get(type(values), "a single value")
            decoder.finish_row(f"{decoder.place} has {kind} where an object should be")
            continue
        decoder.finish_row()
        yield Record(values, decoder.place)


def parse_values(
    content: bytes, place: str, decoder: RowDecoder, max_values: int = MAX_JSON_VALUES
) -> Any:
    """Parse JSON; invalid Unicode in strings is replaced by U+FFFD and counted."""
    values = parse_json(decoder.decode(content), place, max_values=max_values)
    if HALF_CHARACTER.search(content) is None:
        return values
    try:
        return _replace_surrogates(values, decoder)
    except RecursionError:
        raise DamagedFileError(f"{place} is nested too deeply") from None


def _replace_surrogates(value: Any, decoder: RowDecoder) -> Any:
    """Replace lone surrogates in the strings of a JSON value."""
    clean = decoder.replace_surrogates
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_replace_surrogates(item, decoder) for item in value]
    if isinstance(value, dict):
        return {clean(key): _replace_surrogates(item, decoder) for key, item in value.items()}
    return value
