"""Finding the columns of a table by role, and reading texts and labels from its cells."""

from collections.abc import Sequence

from bertkit.base.errors import InputError
from bertkit.data.tables.record import BrokenRowError, Record, has_column, look_up
from bertkit.data.tables.records import RecordTable
from bertkit.reports.text import show

SHOWN_CHARS, SHOWN_LABELS = 40, 10
MAX_LABEL_CHARS = 1000  # the longest real labels, paths in a taxonomy, have a few hundred


def find_column(
    table: RecordTable, role: str, wanted: str | None, usual: Sequence[str] = ()
) -> str:
    """Find the name of the column for a role.

    Args:
        table: the table; some formats define the roles of their columns.
        role: text, pair, label …; the matching flag is `--<role>-column`.
        wanted: the flag's value.
        usual: names to look for if the flag isn't given.
    """
    columns = table.columns
    if wanted is None:
        wanted = table.roles.get(role)
    if wanted is None:
        wanted = next((name for name in usual if columns is None or name in columns), None)
    if wanted is None or (columns is not None and not has_column(columns, wanted)):
        shown = name_labels(columns) if columns else "none"
        what = f"no column {wanted}" if wanted is not None else f"no column for the {role}"
        raise InputError(
            f"{table.name} has {what}; name one of its columns with --{role}-column: {shown}"
        )
    return wanted


def take_text(record: Record, column: str) -> str:
    """Return the text in a column."""
    value = take_value(record, column)
    if not isinstance(value, str):
        found = "nothing" if value is None else type(value).__name__
        raise BrokenRowError(f"{record.place} has {found} in {column} where a text should be")
    return value


def take_label(record: Record, column: str) -> str:
    """Return the label in a column as text; integers and booleans are labels too."""
    value = take_value(record, column)
    label = read_label(value)
    if label is None:
        raise BrokenRowError(f"{record.place} has no label in {column}: {value!r:.{SHOWN_CHARS}}")
    if not label:
        raise BrokenRowError(f"{record.place} has an empty label in {column}")
    return check_label(label, record, column, "label")


def take_labels(record: Record, column: str, separator: str) -> tuple[str, ...]:
    """Return the labels in a column: a list, or a text with separators; possibly empty."""
    value = take_value(record, column)
    values = value.split(separator) if isinstance(value, str) else value
    labels = [read_label(each) for each in values] if isinstance(values, list) else [None]
    if None in labels:
        raise BrokenRowError(
            f"{record.place} has {value!r:.{SHOWN_CHARS}} in {column} where a list of labels, or"
            f" labels with {separator!r} between them, should be"
        )
    kept = dict.fromkeys(label for label in labels if label)
    return tuple(check_label(label, record, column, "label") for label in kept)


def check_label(label: str, record: Record, column: str, role: str) -> str:
    """Return the label, or raise BrokenRowError if it is so long that it must be a text."""
    if len(label) > MAX_LABEL_CHARS:
        raise BrokenRowError(
            f"{record.place} has {len(label):,} characters in {show(column, SHOWN_CHARS)}, and a"
            f" {role} has at most {MAX_LABEL_CHARS:,}; if it is the wrong column, name the right"
            f" one with --{role}-column"
        )
    return label


def name_labels(labels: Sequence[str]) -> str:
    """List the first labels, shortened and each on one line, and how many more there are."""
    more = len(labels) - SHOWN_LABELS
    shown = ", ".join(show(label, SHOWN_CHARS) for label in labels[:SHOWN_LABELS])
    return shown + (f" and {more:,} more" if more > 0 else "")


def read_label(value: object) -> str | None:
    """Convert a cell's value to a label, spelled as in JSON; None if it can't be one."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # in tables with missing cells, integers are stored as 1.0
    return str(value).strip() if isinstance(value, str | int) else None


def take_value(record: Record, column: str) -> object:
    """Return the value in a column, of any type."""
    try:
        return look_up(record.values, column)
    except KeyError:
        raise BrokenRowError(f"{record.place} has no {column}") from None
