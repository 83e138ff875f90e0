"""Writing small labeled files, and reading them."""

from pathlib import Path

import pytest

from bertkit.base.errors import BertkitError, InputError
from bertkit.data.problems import RowReport
from bertkit.data.tables.records import Record, open_records
from bertkit.data.tables.settings import RecordSettings


def write(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(
    source: Path | str, split: str = "train", **settings: object
) -> tuple[list[Record], RowReport]:
    table = open_records(source, RecordSettings(**settings), split=split)
    table.report.name = Path(table.name).name
    return list(table.records()), table.report


def read_values(source: Path | str, **settings: object) -> list[dict[str, object]]:
    """The values of all rows, none of which is broken."""
    records, report = read(source, **settings)
    assert report.num_broken == 0
    assert report.num_rows == len(records)
    return [dict(record.values) for record in records]


def refuse(
    source: Path | str, match: str, error: type[BertkitError] = InputError, **settings: object
) -> None:
    with pytest.raises(error, match=match) as caught:
        read(source, **settings)
    assert "\n" not in str(caught.value)
