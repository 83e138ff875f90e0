"""JSONL: a record a line, an object with the text in one field, or the text alone."""

import json
from collections.abc import Iterator
from typing import BinaryIO

from bertkit.base.errors import InputError
from bertkit.data.tables.lines import read_lines
from bertkit.data.tables.row import RowDecoder, TextRow, show_names

KINDS = {dict: "an object", list: "an array", bool: "true or false"}


def read_rows(stream: BinaryIO, decoder: RowDecoder) -> Iterator[TextRow]:
    """A row for each line; a blank one and a null are empty texts.

    Which field has the text is settled by the first object.

    Raises:
        InputError: a line isn't JSON, or has no text in the field.
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
    """What stands in a line; None where it is blank.

    Raises:
        InputError: it isn't JSON.
    """
    if not line.strip():
        return None
    try:
        return json.loads(decoder.decode(line))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{decoder.place} isn't JSON ({error}); mend the line") from None


def take_field(record: dict[str, object], name: str, decoder: RowDecoder) -> object:
    """The value of a record's field.

    Raises:
        InputError: there is no such field.
    """
    if name not in record:
        has = f"it has {show_names(record)}" if record else "it is empty"
        raise InputError(f"{decoder.place} has no field {name}; {has}")
    return record[name]
