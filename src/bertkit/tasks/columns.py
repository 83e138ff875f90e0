"""Which column of a table is what."""

from collections.abc import Mapping, Sequence

from bertkit.base.errors import InputError
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import RecordTable

SHOWN_CHARS = 40


def find_column(
    table: RecordTable, role: str, wanted: str | None, usual: Sequence[str] = ()
) -> str:
    """The name of the column that has a role.

    Args:
        table: some formats know their own roles.
        role: text, pair, label …; its flag is `--<role>-column`.
        wanted: the flag's value.
        usual: names to look for without it.

    Raises:
        InputError: there is no such column.
    """
    columns = table.columns
    if wanted is None:
        wanted = table.roles.get(role)
    if wanted is None:
        wanted = next((name for name in usual if columns is None or name in columns), None)
    if wanted is None or (columns is not None and wanted not in columns):
        shown = ", ".join(name[:SHOWN_CHARS] for name in columns or ()) or "none"
        what = f"no column {wanted}" if wanted is not None else f"no column for the {role}"
        raise InputError(
            f"{table.name} has {what}; name one of its columns with --{role}-column: {shown}"
        )
    return wanted


def take_text(record: Record, column: str) -> str:
    """The text in a column.

    Raises:
        BrokenRowError: there is none.
    """
    value = _take(record.values, column, record.place)
    if not isinstance(value, str):
        raise BrokenRowError(
            f"{record.place} has {type(value).__name__} in {column} where a text should be"
        )
    return value


def take_label(record: Record, column: str) -> str:
    """The label in a column, as text: numbers and truth values are labels too.

    Raises:
        BrokenRowError: there is none.
    """
    value = _take(record.values, column, record.place)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BrokenRowError(f"{record.place} has no label in {column}: {value!r:.40}")
    label = str(value).strip()
    if not label:
        raise BrokenRowError(f"{record.place} has an empty label in {column}")
    return label


def _take(values: Mapping[str, object], column: str, place: str) -> object:
    if column not in values:
        raise BrokenRowError(f"{place} has no {column}")
    return values[column]
