"""JSONL: one object per line; where only texts are read, a line may also be a string.

Objects may have different keys. Those of the first thousands of rows are the columns.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO

from pydantic import JsonValue

from bertkit.base.errors import DamagedFileError, InputError
from bertkit.data.tables.decoder import DEFAULT_FIELD, RowDecoder, look_up, show_names
from bertkit.data.tables.formats.lines import read_lines
from bertkit.data.tables.record import Record, Rows, list_columns

KINDS = {dict: "an object", list: "an array", bool: "true or false"}
MAX_FIRST_ROWS, MAX_FIRST_BYTES = 4096, 16 << 20  # rows that are read ahead for their keys


def read_rows(stream: BinaryIO, decoder: RowDecoder) -> Rows:
    """Read a record for each object; skip blank lines, count other lines as broken."""
    if decoder.texts_only:
        return Rows((DEFAULT_FIELD,), name_texts(_parse_texts(stream, decoder), decoder))
    records = read_objects(stream, decoder)
    first = []
    for record in records:
        first.append(record)
        if len(first) == MAX_FIRST_ROWS or decoder.report.num_bytes >= MAX_FIRST_BYTES:
            break
    return Rows(list_columns(record.values for record in first), chain(first, records))


def _parse_texts(stream: BinaryIO, decoder: RowDecoder) -> Iterator[JsonValue]:
    """Yield the value of each line, None of a blank one."""
    # Other fields don't matter, so the strict parser isn't needed, which takes longer.
    parse = json.JSONDecoder(parse_constant=lambda _: None).decode
    for line in read_lines(stream, decoder):
        try:
            yield parse(decoder.decode(line)) if line.strip() else None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{decoder.place} isn't JSON ({error}); correct the line") from None


def name_texts(values: Iterable[JsonValue], decoder: RowDecoder) -> Iterator[Record]:
    """Yield a record for each text, or object with one; None is an empty text.

    The first object determines which field has the text; a later one may not contradict it.
    """
    column = None
    for value in values:
        id_of = {}
        if isinstance(value, dict):
            column = column or decoder.choose_column(list(value))
            id_of = decoder.name_id(value)
            found = _take_field(value, column, decoder)
        else:
            found = value
        if found is not None and not isinstance(found, str):
            kind = KINDS.get(type(found), "a number")
            raise InputError(f"{decoder.place} has {kind} where a text should be; quote it")
        text = decoder.replace_surrogates(found or "")
        decoder.finish_row()
        yield Record({DEFAULT_FIELD: text, **id_of}, decoder.place)


def _take_field(values: dict[str, JsonValue], column: str, decoder: RowDecoder) -> object:
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
        return values[column] if column in values else look_up(values, column)
    except KeyError:
        has = f"it has {show_names(values)}" if values else "it is empty"
        raise InputError(f"{decoder.place} has no field {column}; {has}") from None


def read_objects(stream: BinaryIO, decoder: RowDecoder) -> Iterator[Record]:
    """Yield a record for each line that is an object; others are broken."""
    for line in read_lines(stream, decoder, skips_blank=True):
        decoder.set_line(decoder.num_lines)
        try:
            values = decoder.parse(line)
        except DamagedFileError as error:
            decoder.finish_row(str(error))
        else:
            yield from take_object(values, decoder)


def take_object(values: JsonValue, decoder: RowDecoder) -> Iterator[Record]:
    """Yield a record of an object; another value is a broken row."""
    if isinstance(values, dict):
        decoder.finish_row()
        yield Record(values, decoder.place)
    else:
        kind = KINDS.get(type(values), "a single value")
        decoder.finish_row(f"{decoder.place} has {kind} where an object should be")
