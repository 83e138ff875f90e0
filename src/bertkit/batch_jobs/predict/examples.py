"""Examples to predict, from the rows of a file."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from bertkit.base.errors import InputError
from bertkit.base.settings import Settings
from bertkit.batch_jobs.predict.settings import PredictSettings
from bertkit.data.tables.decoder import show_names
from bertkit.data.tables.record import RowReport, has_column
from bertkit.data.tables.records import open_records
from bertkit.data.tables.rows import Table
from bertkit.data.tables.settings import RecordSettings
from bertkit.tasks.column_settings import with_columns
from bertkit.tasks.task import Task


class ExampleFile:
    """The rows of a file as unlabeled examples.

    Args:
        task: the task, whose parser reads the rows.
        source: a file, or - for standard input.
        settings: how the file is read.
        columns: column names that override the model's own settings.

    Attributes:
        report: statistics and problems of the rows read so far.
        rows: the values of the rows whose predictions are still to come, by column.

    Raises:
        InputError: columns are missing, or the file isn't in its format.
        BertkitError: the file can't be read.
    """

    def __init__(
        self, task: Task[Any, Any], source: Table, settings: PredictSettings, columns: Settings
    ) -> None:
        layout = settings.model_dump(include=set(RecordSettings.model_fields))
        self._table = open_records(source, RecordSettings(**layout), split=settings.split)
        self._parse = task.build_parser(
            with_columns(task.settings, columns), self._table, needs_answer=False
        )
        self.report = RowReport(self._table.name)
        self.rows: deque[Mapping[str, Any]] = deque()
        names = self._table.columns or ()
        for name in [*(settings.keep_columns or ()), *filter(None, [settings.id_column])]:
            if names and not has_column(names, name):
                raise InputError(
                    f"{self._table.name} has no column {name}; it has {show_names(names)}"
                )

    def __iter__(self) -> Iterator[Any]:
        """Yield examples, in the order of the rows."""
        for record in self._table.records(self.report):
            self._check()
            example = self._parse(record)
            self.rows.append(record.values)
            yield example
        self._check()
        if not self.report.num_rows:
            raise InputError(f"{self.report.name} has no rows; check that it is the right file")

    def _check(self) -> None:
        if self.report.num_broken:
            raise InputError(f"{self.report.first_broken[0]}; correct or remove it")
