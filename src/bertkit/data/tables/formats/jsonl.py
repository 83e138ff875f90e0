"""JSONL: one object per line; where only texts are read, a line may also be a string."""

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO

from bertkit.base.errors import DamagedFileError, InputError
from bertkit.base.files import MAX_JSON_VALUES, parse_json
from bertkit.data.tables.formats.lines import read_lines
from bertkit.data.tables.record import Record, RecordDecoder, Rows
from bertkit.data.tables.row import RowDecoder, TextRow, show_names
from bertkit.data.tables.settings import RecordSettings

KINDS = {dict: "an object", list: "an array", bool: "true or false"}
HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")


def read_rows(stream: BinaryIO, decoder: RowDecoder) -> Iterator[TextRow]:
    """Yield a row for each line; blank lines and nulls are empty texts.

    The first object determines which field has the text.
    """
    name = None
    for line in read_lines(stream, decoder):
        record = parse_record(line, decoder)
        if isinstance(record, dict):
            if name is None:
                name = decoder.choose_field(list(record))
            record = take_field(record, name, decoder)
        if record is not None and not isinstance(record, str):
            kind = KINDS.get(type(record), "a number")
            raise InputError(f"{decoder.place} has {kind} where a text should be; quote it")
        yield TextRow(decoder.mend(record or ""), len(line))


def parse_record(line: bytes, decoder: RowDecoder) -> object:
    """Parse a line; None if it is blank."""
    if not line.strip():
        return None
    try:
        return json.loads(decoder.decode(line))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{decoder.place} isn't JSON ({error}); mend the line") from None


def take_field(record: dict[str, object], name: str, decoder: RowDecoder) -> object:
    """Return the value of a record's field."""
    if name not in record:
        has = f"it has {show_names(record)}" if record else "it is empty"
        raise InputError(f"{decoder.place} has no field {name}; {has}")
    return record[name]


def read_records(stream: BinaryIO, decoder: RecordDecoder, _: RecordSettings) -> Rows:
    """Read a record for each object; skip blank lines, count other lines as broken."""
    records = _read_objects(stream, decoder)
    first = next(records, None)
    if first is None:
        return Rows((), records)
    return Rows(tuple(first.values), chain([first], records))


def _read_objects(stream: BinaryIO, decoder: RecordDecoder) -> Iterator[Record]:
    for line in decoder.number_lines(read_lines(stream, decoder)):
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
        return _mend(values, decoder)
    except RecursionError:
        raise DamagedFileError(f"{place} is nested too deeply") from None


def _mend(value: Any, decoder: RowDecoder) -> Any:
    """Replace lone surrogates in the strings of a JSON value."""
    if isinstance(value, str):
        return decoder.mend(value)
    if isinstance(value, list):
        return [_mend(item, decoder) for item in value]
    if isinstance(value, dict):
        return {decoder.mend(key): _mend(item, decoder) for key, item in value.items()}
    return value
