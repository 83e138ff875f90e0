"""Rows from Python: lists, data frames, Arrow tables, `datasets`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from bertkit.base.errors import InputError
from bertkit.base.extras import require_package
from bertkit.base.progress import announce
from bertkit.data.input_files import exists, name_input
from bertkit.data.tables.decoder import DEFAULT_FIELD, RowDecoder, show_names
from bertkit.data.tables.formats.hub import read_dataset
from bertkit.data.tables.formats.parquet import ROWS_AT_ONCE, read_batches
from bertkit.data.tables.record import Record, Rows, list_columns, to_plain
from bertkit.reports.text import shorten

if TYPE_CHECKING:
    import pyarrow as pa

INDEX_PREFIX = "__index_level_"  # columns of a pandas index, as pyarrow names them
TEXTS = (DEFAULT_FIELD,)
LABELED_TEXTS = (DEFAULT_FIELD, "label")
LABELED_PAIRS = (DEFAULT_FIELD, "pair", "label")
TAGGED_WORDS = ("tokens", "tags")
MISSING = frozenset({"None", "NaN"})  # as `name_value` calls a text that isn't there


@runtime_checkable
class ArrowTable(Protocol):
    """A table in Arrow's memory format: a data frame of pandas or polars, or a PyArrow table."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as a stream of batches."""


# A file as a string or path, or rows: mappings by column, tuples, or texts.
Table = str | Path | ArrowTable | Iterable[Mapping[str, Any] | tuple[Any, ...] | str | Path]


def find_reader(given: object) -> tuple[Callable[[RowDecoder], Rows], bool]:
    """Return what reads a record for each row from Python, and whether the rows are a list.

    Args:
        given: a data frame of pandas or polars, a PyArrow table, a `datasets.Dataset`, or mappings,
            tuples or texts (also a Series or another column). A tuple is a text and its label, a
            text with a second text and their label, or the words of a text and their tags; a named
            tuple is a mapping.
    """
    if type(given).__module__.partition(".")[0] == "datasets":
        if isinstance(given, Mapping):
            raise InputError(
                f"a {type(given).__name__} has several datasets; give one of them, such as"
                f" dataset[{next(iter(given), 'train')!r}]: {show_names(list(given))}"
            )
        if getattr(given, "column_names", None):
            return partial(read_dataset, given), False
    # A Series of pandas or polars, or a chunked array of PyArrow.
    is_column = hasattr(given, "to_list") or (hasattr(given, "chunks") and hasattr(given, "type"))
    if isinstance(given, ArrowTable) and not is_column:
        return partial(_read_table, _take_table(given)), False
    is_one = isinstance(given, Mapping | str | bytes | set | frozenset) or _has_no_dimension(given)
    if is_one or not isinstance(given, Iterable):
        raise InputError(
            f"expected a file's name, a data frame, or a list of rows, got {name_value(given)}"
        )
    values = given.to_pylist() if hasattr(given, "to_pylist") else given  # an array of PyArrow
    rows = [row._asdict() if hasattr(row, "_asdict") else row for row in values]  # named tuples
    return partial(_read_list, rows, _name_columns(rows) if rows else ()), True


def _read_table(table: "pa.Table", decoder: RowDecoder) -> Rows:
    batches = table.to_batches(max_chunksize=ROWS_AT_ONCE)
    return Rows(tuple(table.column_names), read_batches(batches, decoder), table.num_rows)


def _read_list(rows: Sequence[object], columns: tuple[str, ...], decoder: RowDecoder) -> Rows:
    """Read mappings, whose columns are those of all, and tuples or texts like the first row."""

    def read_records() -> Iterator[Record]:
        for number, row in enumerate(rows, start=1):
            decoder.where = f"row {number:,}"
            if isinstance(row, str) or (columns == TEXTS and name_value(row) in MISSING):
                row = (row if isinstance(row, str) else "",)
            if isinstance(row, tuple) and len(row) == len(columns):
                row = dict(zip(columns, row, strict=True))
            if isinstance(row, Mapping):
                try:
                    values = {str(name): to_plain(value) for name, value in row.items()}
                except RecursionError:
                    decoder.finish_row(f"{decoder.place} has a value that is nested too deeply")
                    continue
                decoder.finish_row()
                yield Record(values, decoder.place)
            else:
                wrong = f"isn't like the first row, which has {', '.join(columns)}"
                if columns == TEXTS:
                    wrong = f"must be a text, got {name_value(row)}"
                decoder.finish_row(f"{decoder.place} {wrong}")

    return Rows(columns, read_records(), len(rows))


def _has_no_dimension(value: object) -> bool:
    """Whether it is an array such as `np.array("a text")`, over which nothing can iterate."""
    return getattr(value, "ndim", 1) == 0


def name_value(value: object) -> str:
    """Return what a value is, for a message: None, NaN, or its type."""
    if value is None or (isinstance(value, float) and value != value):
        return str(value).replace("nan", "NaN")
    if _has_no_dimension(value):
        return f"{type(value).__name__} without dimensions"
    return type(value).__name__


def _name_columns(rows: Sequence[object]) -> tuple[str, ...]:
    """Return the columns of mappings, or of rows that are like the first one."""
    first = rows[0]
    if isinstance(first, str) or name_value(first) in MISSING:
        return TEXTS
    if isinstance(first, Mapping):
        return list_columns(row for row in rows if isinstance(row, Mapping))
    if isinstance(first, tuple) and len(first) in {2, 3}:
        if len(first) == 3:
            return LABELED_PAIRS
        is_list = isinstance(to_plain(first[0]), list)
        return TAGGED_WORDS if is_list else LABELED_TEXTS
    shown = f"a tuple of {len(first)}" if isinstance(first, tuple) else name_value(first)
    raise InputError(
        "a row must be a mapping from columns to values, a tuple (text, label), (text, pair,"
        f" label) or (words, tags), or a text; the first is {shown}"
    )


def _take_table(rows: ArrowTable) -> "pa.Table":
    """Return an Arrow table without the index of pandas."""
    require_package("pyarrow", f"the {type(rows).__name__}")
    import pyarrow as pa

    name = f"the {type(rows).__name__}"
    names = getattr(rows, "column_names", getattr(rows, "columns", ()))
    RowDecoder(name).check_unique([str(each) for each in names])
    try:
        table = rows if isinstance(rows, pa.Table) else pa.table(rows)
    except (pa.ArrowException, TypeError) as error:
        cause = "; ".join(map(str, error.args)).partition("\n")[0]
        raise InputError(f"{name} has a column of mixed types: {cause}") from None
    kept = [name for name in table.column_names if not name.startswith(INDEX_PREFIX)]
    return table.select(kept)


def name_files(data: object) -> list[str] | None:
    """Return data as names of files, folders or globs; None if they are rows or texts.

    A string or a path is a name, and so is everything in a list with a path. A list of strings is
    texts, whatever files there are; if there is one for each, that is announced.
    """
    if isinstance(data, str | Path):
        return [name_input(data)]
    if not isinstance(data, Sequence) or not all(isinstance(one, str | Path) for one in data):
        return None
    if any(isinstance(one, Path) for one in data):
        return [name_input(one) for one in data]
    if data and all(map(exists, data)):
        announce(
            f"{shorten(', '.join(data))}: read as texts, though there are files of these names; a"
            " list of pathlib.Path names files"
        )
    return None
