"""Labeled records from any supported source: values by column, and their place in the file.

Unusable rows are left out and counted, the first five with file and line; a file in which more than
`max_broken` of the rows are unusable is rejected.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar, get_args

from bertkit.base.checksums import record_file
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
from bertkit.data.tables.formats import find_format, glue, hub, open_rows
from bertkit.data.tables.record import (
    PLAIN_CSV,
    BrokenRowError,
    CsvStyle,
    NoLabelError,
    Record,
    Rows,
)
from bertkit.data.tables.rows import LABELED_PAIRS, TEXTS, Table, find_reader
from bertkit.data.tables.settings import RecordFormat, RecordSettings

Example = TypeVar("Example")

HUB_FORMAT = "hub"
ROWS_FORMAT = "rows"
MAX_BYTES = 4 << 30
LOOKED_ROWS, LOOKED_BYTES = 5000, 16 << 20  # of a table, before it is read
RECORD_FORMATS = sorted({*get_args(RecordFormat)} - {"auto"})

OpenRows = Callable[[RowDecoder, ExitStack], Rows]


@dataclass
class RecordTable:
    """A file, standard input, a dataset or rows from Python, each row of which is a record.

    It is opened once, to find its columns, and its rows are read on from there.

    Attributes:
        columns: column names; for JSONL, where each row has its own, those of the first thousands
            of rows; None if there are no rows.
        csv_style: how a CSV file that is made of it is written.
        report: counts of the rows read so far; a further pass begins with a new one.
    """

    name: str  # in messages
    format: str  # a key of `FORMATS`, hub, or rows for those from Python
    open_rows: OpenRows
    path: Path | RemoteFile | None = None  # None if it isn't a file
    settings: RecordSettings = field(default_factory=RecordSettings)
    columns: tuple[str, ...] | None = None
    csv_style: CsvStyle = PLAIN_CSV
    # columns by `text`, `pair`, `label`, if the layout is a known one
    roles: dict[str, str] = field(default_factory=dict)
    # those that only their cells show
    found: dict[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)  # as in `open_records`
    encoding: str | None = None  # that was named, or is evident
    is_known: bool = False  # whether `look` saw all rows
    report: RowReport = field(default_factory=lambda: RowReport(""))
    _opened: tuple[ExitStack, RowDecoder, Rows] | None = None
    _sha256: str | None = None

    def open(self) -> None:
        """Open the source at its first row."""
        decoder = RowDecoder(self.name, RowReport(self.name), self.settings, kept=self.kept)
        with ExitStack() as stack:
            rows = self.open_rows(decoder, stack)
            self._opened = stack.pop_all(), decoder, rows
        self.columns, self.report = rows.columns or None, decoder.report
        self.encoding = decoder.encoding
        delimiter = rows.delimiter if self.format == "csv" else PLAIN_CSV.delimiter
        self.csv_style = CsvStyle(delimiter, decoder.needs_mark)

    def find_as(self, other: "RecordTable") -> None:
        """Take the columns that another table's cells show, if this one has them, too."""
        names = self.columns or ()
        self.found |= {role: name for role, name in other.found.items() if name in names}

    def look(self) -> list[Record]:
        """Return the first thousands of rows, which `records` then yields first."""
        if self._opened is None:
            self.open()
        assert self._opened is not None
        stack, decoder, rows = self._opened
        found, records = list[Record](), iter(rows.records)
        while len(found) < LOOKED_ROWS and decoder.report.num_bytes < LOOKED_BYTES:
            if (record := next(records, None)) is None:
                self.is_known = True
                break
            found.append(record)
        self._opened = stack, decoder, rows._replace(records=chain(found, records))
        return found

    @property
    def is_standard_input(self) -> bool:
        """Whether it can be read only once."""
        return self.name == STANDARD_INPUT_NAME and self.path is None

    def records(self) -> Iterator[Record]:
        """Yield all usable records, in memory that doesn't grow with the file.

        Exceptions: a file of JSON is held whole, and of Parquet one row group, of any size. The
        report counts all rows.
        """
        if self._opened is None:
            if self.is_standard_input:
                raise InputError(f"{self.name} can be read once; write it to a file and name that")
            self.open()
        assert self._opened is not None
        (stack, decoder, rows), self._opened = self._opened, None
        digest = None if self.path or self.is_standard_input else hashlib.sha256()
        with stack:
            for record in rows.records:
                if digest is not None:
                    digest.update(json.dumps(record.values, default=repr).encode())
                yield record
        self._sha256 = decoder.sha256 if digest is None else digest.hexdigest()
        decoder.check_decodable(is_whole=True)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the content, which is known once all records have been read.

        That of a file is that of its bytes. Parquet is read by position, so such a file is read
        once more for it, and a table whose rows weren't read is read, too.
        """
        if self._sha256 is None:
            if self.path is not None:
                self._sha256 = record_file(self.path).sha256
            else:
                for _ in self.records():
                    pass
        assert self._sha256 is not None, "standard input has no identity"
        return self._sha256

    @property
    def identity(self) -> dict[str, str]:
        """Name, format and SHA-256 of the data."""
        name = self.name if self.format == HUB_FORMAT else Path(self.name).name
        return {"name": name, "format": self.format, "sha256": self.sha256}

    def read(
        self,
        parse: Callable[[Record], Example],
        settle: Callable[[list[Example], RowReport], list[Example]] | None = None,
    ) -> list[Example]:
        """Read all examples into memory.

        To leave a record out, `parse` raises `BrokenRowError` or `NoLabelError`. `settle` decides
        what depends on all examples together, and returns those to use.
        """
        examples = []
        for record in self.records():
            if self.report.num_bytes > MAX_BYTES:
                raise InputError(
                    f"{record.place} is beyond the {MAX_BYTES >> 30} GiB that are held in memory at"
                    " once; split the file"
                )
            try:
                examples.append(parse(record))
            except NoLabelError as error:
                self.report.add_unlabeled(str(error))
            except BrokenRowError as error:
                self.report.add_broken(str(error))
        examples = examples if settle is None else settle(examples, self.report)
        self.check_broken(self.report)
        return examples

    def check_broken(self, report: RowReport) -> None:
        """Raise an error if too many of the rows that a report counts are broken."""
        is_default = "max_broken" not in self.settings.model_fields_set
        report.check_share(self.settings.max_broken, allows_few=is_default)


def open_records(
    source: "Table | RecordTable",
    settings: RecordSettings | None = None,
    *,
    split: str = "train",
    kept: Mapping[str, str] | None = None,
) -> RecordTable:
    """Open a table of records and read its column names.

    Args:
        source: a file (may be .gz, .bz2 or .zst), the folder of a GLUE task, a dataset as
            hub:owner/name (optionally with /config and @split), - for standard input, or rows as in
            `find_reader`, which messages call by their split.
        split: train, dev or test, if `source` has several.
        kept: encoding and delimiter of similar files, which are tried if none is given and the
            file isn't in the default one.
    """
    if isinstance(source, RecordTable):
        return source
    settings = settings or RecordSettings()
    if not isinstance(source, str | Path):
        read, is_list = find_reader(source)
        table = _open(split, ROWS_FORMAT, read, settings)
        if is_list and table.columns == TEXTS:
            table.format = "text"
        if is_list and table.columns == LABELED_PAIRS:
            table.roles = {name: name for name in LABELED_PAIRS}
        return table
    if str(source) == STANDARD_INPUT:
        check_standard_input("records")
        chosen = "text" if settings.format == "auto" else settings.format
        return _open_file(None, chosen, settings, kept)
    if str(source).startswith(HUB_SCHEME):
        read = partial(hub.read_dataset, hub.find_dataset(str(source), split))
        return _open(str(source), HUB_FORMAT, read, settings)
    path = locate(source)
    state = look_at(path)
    if state.is_folder and isinstance(path, Path):
        return _open_glue(path, settings, split)
    if state.size_bytes is None and isinstance(path, Path):
        raise InputError(f"{path} must be a file; the records of a pipe are read with -")
    return _open_file(path, _find_format(path, settings), settings, kept)


def _open(
    name: str, chosen: str, read: Callable[[RowDecoder], Rows], settings: RecordSettings
) -> RecordTable:
    """Open rows in memory."""
    table = RecordTable(name, chosen, lambda decoder, _: read(decoder), settings=settings)
    table.open()
    return table


def _open_file(
    path: Path | RemoteFile | None,
    chosen: str,
    settings: RecordSettings,
    kept: Mapping[str, str] | None = None,
) -> RecordTable:
    """Open a file, or standard input."""
    name = STANDARD_INPUT_NAME if path is None else str(path)
    rows = partial(open_rows, path, chosen)
    table = RecordTable(name, chosen, rows, path, settings, kept=kept or {})
    table.open()
    return table


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
