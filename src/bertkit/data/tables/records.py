"""Labeled records from any supported source: values by column, and their place in the file.

Unusable rows are left out and counted, the first five with file and line; a file in which more than
`max_broken` of the rows are unusable is rejected.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, get_args

from bertkit.base.errors import InputError
from bertkit.base.remote import RemoteFile, locate
from bertkit.data.input_files import (
    HUB_SCHEME,
    NOT_TEXT,
    STANDARD_INPUT,
    STANDARD_INPUT_NAME,
    find_extension,
    look_at,
)
from bertkit.data.problems import RowReport
from bertkit.data.tables.decoder import RowDecoder, check_standard_input
from bertkit.data.tables.formats import find_format, glue, hub
from bertkit.data.tables.origins import FileOrigin, InputOrigin, Origin
from bertkit.data.tables.record import BrokenRowError, NoLabelError, Record
from bertkit.data.tables.rows import TEXTS, ListOrigin, Table, find_origin
from bertkit.data.tables.settings import RecordFormat, RecordSettings

Example = TypeVar("Example")

HUB_FORMAT = "hub"
ROWS_FORMAT = "rows"
MAX_BYTES = 4 << 30
RECORD_FORMATS = sorted({*get_args(RecordFormat)} - {"auto"})


@dataclass
class RecordTable:
    """A file, standard input or a dataset, each row of which is a record.

    Attributes:
        columns: column names; for JSONL, where each row has its own, those of the first thousands
            of rows; None if there are no rows.
    """

    name: str  # in messages
    format: str  # a key of `FORMATS`, hub, or rows for those from Python
    columns: tuple[str, ...] | None
    origin: Origin  # where its rows come from
    # columns by `text`, `pair`, `label`, if the layout is a known one
    roles: dict[str, str] = field(default_factory=dict)
    settings: RecordSettings = field(default_factory=RecordSettings)

    def records(self, report: RowReport) -> Iterator[Record]:
        """Yield all usable records, in memory that doesn't grow with the file.

        Exceptions: a SQuAD file is held whole, and of Parquet one row group, of any size. The
        report counts all rows.
        """
        decoder = RowDecoder(self.name, report, self.settings)
        with self.origin.open(decoder) as rows:
            yield from rows.records
        decoder.check_decodable(is_whole=True)

    def identity(self) -> dict[str, str] | None:
        """Return name, format and SHA-256 of the data; None for standard input."""
        sha256 = self.origin.sha256()
        if sha256 is None:
            return None
        name = self.name if self.format == HUB_FORMAT else Path(self.name).name
        return {"name": name, "format": self.format, "sha256": sha256}


def open_records(
    source: Table, settings: RecordSettings | None = None, *, split: str = "train"
) -> RecordTable:
    """Open a table of records and read its column names.

    Args:
        source: a file (may be .gz, .bz2 or .zst), the folder of a GLUE task, a dataset as
            hub:owner/name (optionally with /config and @split), - for standard input, or rows as in
            `find_origin`, which messages call by their split.
        split: train, dev or test, if `source` has several.
    """
    settings = settings or RecordSettings()
    if not isinstance(source, str | Path):
        origin, roles = find_origin(source)
        is_texts = isinstance(origin, ListOrigin) and origin.columns_ == TEXTS
        table = _open(split, "text" if is_texts else ROWS_FORMAT, origin, settings)
        table.roles = roles
        return table
    if str(source) == STANDARD_INPUT:
        check_standard_input("records")
        chosen = "text" if settings.format == "auto" else settings.format
        return _open(STANDARD_INPUT_NAME, chosen, InputOrigin(chosen), settings)
    if str(source).startswith(HUB_SCHEME):
        return _open(str(source), HUB_FORMAT, hub.find_dataset(str(source), split), settings)
    path = locate(source)
    state = look_at(path)
    if state.is_folder and isinstance(path, Path):
        return _open_glue(path, settings, split)
    if state.size_bytes is None and isinstance(path, Path):
        raise InputError(f"{path} is read more than once and must be a file; - is standard input")
    return _open_file(path, _find_format(path, settings), settings)


def _open_file(path: Path | RemoteFile, chosen: str, settings: RecordSettings) -> RecordTable:
    return _open(str(path), chosen, FileOrigin(path, chosen), settings)


def _open(name: str, chosen: str, origin: Origin, settings: RecordSettings) -> RecordTable:
    columns = origin.columns(RowDecoder(name, layout=settings)) or None
    return RecordTable(name, chosen, columns, origin, settings=settings)


def _open_glue(folder: Path, settings: RecordSettings, split: str) -> RecordTable:
    path = glue.find_file(folder, split)
    table = _open_file(path, "tsv", settings)
    if glue.lacks_header(table.columns or ()):
        table = _open_file(path, "tsv", settings.model_copy(update={"header": False}))
    table.roles = glue.find_roles(table.columns or ())
    return table


def _find_format(path: Path | RemoteFile, settings: RecordSettings) -> str:
    """Return the format from the settings, or else by the file's extension."""
    if settings.format != "auto":
        return settings.format
    if found := find_format(path, RECORD_FORMATS):
        return found
    if (ending := find_extension(path)) in NOT_TEXT:
        raise InputError(f"{path} isn't text: {NOT_TEXT[ending]}")
    raise InputError(
        f"the name of {path} doesn't show its format; name it with --format:"
        f" {', '.join(RECORD_FORMATS)}"
    )


def read_examples(
    table: RecordTable,
    parse: Callable[[Record], Example],
    report: RowReport,
    max_broken: float | None = None,
    settle: Callable[[list[Example], RowReport], list[Example]] | None = None,
) -> list[Example]:
    """Read all examples of a table into memory.

    To leave a record out, `parse` raises `BrokenRowError` or `NoLabelError`. `max_broken` is by
    default that of the settings. `settle` decides what depends on all examples together, and
    returns those to use.
    """
    examples = []
    for record in table.records(report):
        if report.num_bytes > MAX_BYTES:
            raise InputError(
                f"{record.place} is beyond the {MAX_BYTES >> 30} GiB that are held in memory at"
                " once; split the file"
            )
        try:
            examples.append(parse(record))
        except NoLabelError as error:
            report.add_unlabeled(str(error))
        except BrokenRowError as error:
            report.add_broken(str(error))
    examples = examples if settle is None else settle(examples, report)
    report.check_share(table.settings.max_broken if max_broken is None else max_broken)
    return examples
