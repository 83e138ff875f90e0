"""Finding the columns of a table by role, and reading texts and labels from its cells."""

import ast
import math
import re
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal

from bertkit.base.errors import DamagedFileError, InputError
from bertkit.base.json_files import parse_json
from bertkit.data.tables.decoder import has_column, look_up, show_names
from bertkit.data.tables.formats.separated import lacks_names
from bertkit.data.tables.record import BrokenRowError, ClassName, NoLabelError, NumberCell, Record
from bertkit.data.tables.records import RecordTable
from bertkit.data.tables.settings import NAMED_DELIMITERS
from bertkit.reports.text import show
from bertkit.tokenization.words import SURROGATE

TEXT = "text"  # the format of plain text, and the usual name of a column of texts
SHOWN_CHARS, SHOWN_LABELS = 40, 10
MAX_LABEL_CHARS = 1000  # the longest real labels, paths in a taxonomy, have a few hundred
LARGEST = 1e18  # of numbers to learn: its square, summed over a batch, still fits a float32
WHOLE_NUMBER = re.compile(r"(-?(?:0|[1-9]\d{0,17}))\.0+", re.ASCII)
NUMBER = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?")
# A list as Python and NumPy write it: that is what pandas writes for a cell with a list.
ESCAPE = r"""\\(?:[\\'"nrt]|x[\da-f]{2}|u(?!d[89a-f])[\da-f]{4}|U00(?:0[1-9a-f]|10)[\da-f]{4})"""
QUOTED = rf"""'(?:[^'\\\n]|{ESCAPE})*+'|"(?:[^"\\\n]|{ESCAPE})*+\""""
ITEM = re.compile(rf"{QUOTED}|-?(?:0|[1-9]\d{{0,17}})(?:\.\d{{0,18}})?|True|False", re.ASCII)
WRITTEN_LIST = re.compile(rf"\[\s*+(?:(?:{ITEM.pattern})(?:\s*+,\s*+|\s++|(?=\])))*+\]", re.ASCII)
LIST_BEGINS = re.compile(r"""\s*[\[({]\s*(?:['"\[({]|np\.)""")  # or a tuple, or a set


def find_column(
    table: RecordTable, role: str, wanted: str | None, usual: Sequence[str] = ()
) -> str:
    """Find the name of the column for a role: the one that its flag names, or a usual one.

    The flag of the role text, pair or label is `--<role>-column`; some formats define the roles of
    their columns.
    """
    columns = table.columns
    if wanted is None:
        wanted = table.roles.get(role, table.found.get(role))
    if wanted is None:
        wanted = find_usual(columns, usual)
    if wanted is None or (columns is not None and not has_column(columns, wanted)):
        if table.format == TEXT and role != TEXT:
            raise InputError(
                f"{table.name} is plain text, without a column for the {role}; give a table, such"
                " as CSV or JSONL"
            )
        names = columns or ()
        shown = show_names(names) or "none"
        hint = "; if its first row is data, give --no-header" if lacks_names(names) else ""
        if len(names) == 1 and any(mark in names[0] for mark in NAMED_DELIMITERS.values()):
            hint = "; if another mark separates its cells, name it with --delimiter"
        usually = f", such as {usual[0]}" if usual and role not in usual else ""
        what = f"no column {wanted}" if wanted is not None else f"no column for the {role}{usually}"
        raise InputError(
            f"{table.name} has {what}; name one of its columns with --{role}-column: {shown}{hint}"
        )
    return wanted


def find_usual(columns: Sequence[str] | None, usual: Sequence[str]) -> str | None:
    """Find the column with a usual name, in lower or upper case; None if there is none.

    Without rows there are no columns: then it is the first of these names.
    """
    if columns is None:
        return usual[0] if usual else None
    folded = {name.casefold(): name for name in reversed(columns)}
    exact = next((name for name in usual if name in columns), None)
    return exact or next((folded[name] for name in usual if name in folded), None)


def take_text(record: Record, column: str) -> str:
    """Return the text in a column; a missing one (None, NaN, null) is empty, as a cell of CSV."""
    value = take_value(record, column)
    if value is None:
        return ""
    if not isinstance(value, str):
        found = type(value).__name__
        raise BrokenRowError(f"{record.place} has {found} in {column} where a text should be")
    return value


def take_label(record: Record, column: str) -> str:
    """Return the label in a column as text; numbers and booleans are labels too."""
    value = _take_given(record, column)
    if isinstance(value, list) or (isinstance(value, str) and LIST_BEGINS.match(value)):
        raise BrokenRowError(
            f"{record.place} has the list {value!s:.{SHOWN_CHARS}} in {column} where a label should"
            " be; --multi-label reads lists of labels"
        )
    label = read_label(value)
    if label is None:
        raise BrokenRowError(f"{record.place} has no label in {column}: {value!r:.{SHOWN_CHARS}}")
    if not label:
        raise BrokenRowError(f"{record.place} has an empty label in {column}")
    return check_label(label, record, column, "label")


def take_labels(record: Record, column: str, separator: str) -> tuple[str, ...]:
    """Return the labels in a column, perhaps none: a list, or a text of one or with separators.

    They are in their order, and may be repeated.
    """
    value = _take_given(record, column)
    values = [value] if isinstance(value, ClassName) else value
    if isinstance(values, str) and (values := read_list(cell := values)) is None:
        parts = cell.split(separator)
        is_bare = parts[0].lstrip().startswith("[") and "]" not in parts[0] and "]" in parts[-1]
        # What seems to be a list, and can't be read as one, isn't taken for labels.
        values = None if is_bare or LIST_BEGINS.match(cell) else parts
    labels = [read_label(each) for each in values] if isinstance(values, list) else [None]
    if None in labels:
        raise BrokenRowError(
            f"{record.place} has {value!r:.{SHOWN_CHARS}} in {column} where a list of labels, or"
            f" labels with {separator!r} between them, should be"
        )
    return tuple(check_label(label, record, column, "label") for label in labels if label)


def read_list(cell: str) -> list[object] | None:
    """Return the list that a text is in JSON, or as Python or NumPy writes it; None if it is none.

    Only texts in quotes, numbers, true and false are read; `[a]` is no list.
    """
    cell = cell.strip()
    if not (cell.startswith("[") and cell.endswith("]")):
        return None
    try:
        found = parse_json(cell, "the list")
    except DamagedFileError:
        if WRITTEN_LIST.fullmatch(cell) is None:
            return None
        return [ast.literal_eval(item) for item in ITEM.findall(cell)]
    assert isinstance(found, list)  # it has its brackets
    texts = "".join(each for each in found if isinstance(each, str))
    return None if SURROGATE.search(texts) else [*found]


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
    """Convert a cell's value to a label, spelled as in JSON; None if it can't be one.

    A whole number is spelled without decimals in every format: in tables with missing cells,
    integers are stored as 1.0, and pandas writes them so.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, ClassName):
        return value
    if isinstance(value, float) and math.isfinite(value):
        value = str(int(value)) if value == int(value) else str(value)
    return spell_label(str(value)) if isinstance(value, str | int) else None


def spell_label(label: str) -> str:
    """Return a label without surrounding blanks, and a whole number without decimals: 1.0 is 1."""
    found = WHOLE_NUMBER.fullmatch(label := label.strip())
    return label if found is None else str(int(found[1]))


def sort_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Sort labels by name, or by value if all are numbers (-2 before -1, and 2 before 10)."""
    labels = sorted(labels)
    if all(map(NUMBER.fullmatch, labels)):
        labels.sort(key=Decimal)
    return tuple(labels)


def take_value(record: Record, column: str) -> object:
    """Return the value in a column, of any type."""
    try:
        return look_up(record.values, column)
    except KeyError:
        raise BrokenRowError(f"{record.place} has no {column}") from None


def take_answer(record: Record, column: str) -> object:
    """Return the value in a column of numbers to learn, such as that of a class."""
    value = _take_given(record, column)
    return value.number if isinstance(value, ClassName | NumberCell) else value


def take_number(record: Record, column: str, decimal: str = ".") -> float:
    """Return the number in a column, which may be stored as text with a decimal separator."""
    value = take_answer(record, column)
    if isinstance(value, str) and decimal != ".":
        number = math.nan if "." in value else read_number(value.replace(decimal, "."))
    else:
        number = read_number(value)
    if not abs(number) <= LARGEST:
        is_comma = isinstance(value, str) and decimal == "." and value.count(",") == 1
        advice = "; --decimal , reads decimal commas" if is_comma else ""
        raise BrokenRowError(
            f"{record.place} has {value!r:.{SHOWN_CHARS}} in {column} where a number from"
            f" {-LARGEST:g} to {LARGEST:g} should be{advice}"
        )
    return number


def read_number(value: object) -> float:
    """Convert a cell's value to a number, with a decimal point; NaN if it isn't one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return math.nan
    if isinstance(value, str) and not (value.isascii() and "_" not in value):
        return math.nan  # float() would accept 1_000 and Arabic digits
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def settle_class(label: str, listed: Collection[str]) -> str:
    """Return a label as plain text; of a class the name, or the number if only that is listed."""
    if isinstance(label, ClassName) and label not in listed and str(label.number) in listed:
        return str(label.number)
    return str(label)


def _take_given(record: Record, column: str) -> object:
    """Return the value in a column of labels or numbers to learn; null is no label."""
    value = take_value(record, column)
    if value is None:
        raise NoLabelError(f"{record.place} has null in {column}")
    return value
