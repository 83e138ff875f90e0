"""Predict the rows of a file, and write the answers."""

import json
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.output import open_output
from bertkit.base.progress import ProgressBar, show_progress
from bertkit.base.settings import Settings, replace_surrogates, select
from bertkit.base.transfers import uploads_output
from bertkit.data.file_parts import FilesResult, FilesSettings, make_files
from bertkit.data.problems import RowReport, check_unknown
from bertkit.data.tables.decoder import has_column, look_up, show_names
from bertkit.data.tables.record import PLAIN_CSV
from bertkit.data.tables.records import RecordTable, open_records
from bertkit.data.tables.rows import Table
from bertkit.data.tables.settings import RecordSettings
from bertkit.data.writers import ROW_WRITERS, Row, check_output, write_rows
from bertkit.inference.loading import stamp_model
from bertkit.inference.predictor import AnyPredictor, PredictionCounts, Predictor
from bertkit.inference.settings import EngineSettings
from bertkit.inference.zero_shot import load_zero_shot
from bertkit.jobs.settings import PredictSettings
from bertkit.models.open_model import OpenModel
from bertkit.tasks.classify.zero_shot import ZeroShot
from bertkit.tasks.saved import find_reading
from bertkit.tasks.settings import choose_columns, with_columns
from bertkit.tasks.table import TASKS
from bertkit.tasks.task import AnyTask, TaskExample, TaskPrediction


def open_rows(
    source: Table, settings: PredictSettings, kept: Mapping[str, str] | None = None
) -> RecordTable:
    """Open rows to answer, and read the names of their columns, before a model is loaded.

    `kept` are the encoding and delimiter of the training data, to try by default.
    """
    return open_records(source, select(RecordSettings, settings), split=settings.split, kept=kept)


class ExampleFile:
    """The rows of a file as unlabeled examples, with columns that override the model's own."""

    def __init__(
        self, task: AnyTask, table: RecordTable, settings: PredictSettings, columns: Settings
    ) -> None:
        self._table = table
        self._parse = task.example_kind.build_parser(
            with_columns(task.settings, columns), self._table, needs_answer=False
        )
        self.report, self.csv_style = self._table.report, self._table.csv_style
        self.report.announce_notes()
        self.rows: deque[Mapping[str, object]] = deque()  # whose predictions are still to come
        self.columns = names = self._table.columns or ()
        for name in [*(settings.keep_columns or ()), *filter(None, [settings.id_column])]:
            if names and not has_column(names, name):
                raise InputError(
                    f"{self._table.name} has no column {name}; it has {show_names(names)}"
                )

    def __iter__(self) -> Iterator[TaskExample]:
        """Yield examples, in the order of the rows."""
        for record in self._table.records():
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


class AnsweredRow(NamedTuple):
    """An example with its prediction."""

    number: int  # of the row, from 1
    values: Mapping[str, object]  # of the row by column; empty if there is no file
    example: TaskExample
    prediction: TaskPrediction


@dataclass
class Answers:
    """A stream of answers to examples, which can be read once."""

    predictor: AnyPredictor
    examples: Iterable[TaskExample]
    file: ExampleFile | None = None
    # which columns of the file to keep
    settings: PredictSettings = field(default_factory=PredictSettings)
    # statistics of the examples read so far
    counts: PredictionCounts = field(default_factory=PredictionCounts)
    elapsed_seconds: float = 0.0  # without loading the model; 0 until all answers were read
    is_one_of_many: bool = False  # files, each of which may have unknown words only
    # of the columns of all predictions; None until the first is described
    prefix: str | None = field(default=None, init=False)

    @property
    def task(self) -> AnyTask:
        """The task of the model."""
        return self.predictor.task

    @property
    def report(self) -> RowReport | None:
        """Problems of the file's rows read so far; None if there is no file."""
        return None if self.file is None else self.file.report

    def read(self, progress: ProgressBar) -> Iterator[AnsweredRow]:
        """Yield rows with their answers, in order."""
        started = time.monotonic()
        answers = self.predictor.stream_examples(self.examples, self.counts)
        if self.file is None:  # nothing is answered if no word is known
            answers = iter(list(answers))
            self._check_unknown()
        for number, (example, prediction) in enumerate(answers, start=1):
            values = {} if self.file is None else self.file.rows.popleft()
            yield AnsweredRow(number, values, example, prediction)
            progress.advance(1)
        self.elapsed_seconds = time.monotonic() - started
        self._check_unknown()

    def _check_unknown(self) -> None:
        if self.is_one_of_many:
            return
        name = "the input" if self.report is None else self.report.name
        check_unknown(name, self.counts.unknown_tokens, self.counts.text_tokens)

    def describe_json(self, row: AnsweredRow) -> Row:
        """Return an answer as JSON data, after the id of its row."""
        name = self.settings.id_column
        return {
            "id": row.number if name is None else _find(row, name),
            **row.prediction.to_json(),
        }

    def describe_row(self, row: AnsweredRow) -> Row:
        """Return the kept columns of a row, then the columns of its answer.

        If a column of both has the same name, those of the answer begin with `predicted_`; with
        `predicted_2_` if the file has such a column too, and so on.
        """
        names = self.settings.keep_columns
        kept = dict(row.values) if names is None else {name: _find(row, name) for name in names}
        found = row.prediction.to_row()
        if self.prefix is None:
            known = self.file.columns if self.file and names is None else ()
            prefixes = chain(["", "predicted_"], (f"predicted_{number}_" for number in count(2)))
            columns = {*kept, *known}
            self.prefix = next(
                one for one in prefixes if columns.isdisjoint(f"{one}{name}" for name in found)
            )
        named = {f"{self.prefix}{name}": value for name, value in found.items()}
        if clash := sorted(kept.keys() & named.keys()):
            raise InputError(
                f"row {row.number:,} has the column {clash[0]}, which rows before it lack and the"
                " predictions have; choose columns with --keep-columns"
            )
        return {**kept, **named}


def _find(row: AnsweredRow, column: str) -> object:
    """Return the value of a column; None if the row hasn't got it."""
    try:
        return look_up(row.values, column)
    except KeyError:
        return None


def answer_values(predictor: AnyPredictor, values: Sequence[Any]) -> Answers:
    """Return the answers to values given on the command line."""
    make = predictor.task.make_example
    examples = [
        make(replace_surrogates(value), f"text {number}")
        for number, value in enumerate(values, start=1)
    ]
    return Answers(predictor, examples)


def answer_file(
    predictor: AnyPredictor, table: RecordTable, settings: PredictSettings, columns: Settings
) -> Answers:
    """Return the answers to the rows of a file; arguments and errors as in `ExampleFile`."""
    file = ExampleFile(predictor.task, table, settings, columns)
    return Answers(predictor, file, file, settings)


def write_answers(answers: Answers, output: Path, progress: ProgressBar) -> None:
    """Write all answers atomically, CSV as the input is; the caller must hold the output's lock."""
    rows = (answers.describe_row(row) for row in answers.read(progress))
    write_rows(output, rows, PLAIN_CSV if answers.file is None else answers.file.csv_style)


@dataclass(frozen=True)
class PredictedFile:
    """The command of a task on one file of many."""

    task: str
    model: str
    loading: EngineSettings
    answers: Settings
    settings: PredictSettings
    columns: dict[str, JsonValue]  # their class is made for the task, so that it can't be pickled
    zero_shot: ZeroShot | None = None  # labels in place of those that the model learned

    @cached_property
    def opened(self) -> OpenModel:
        """The model, which each process finds once."""
        return OpenModel.open(self.model, revision=self.loading.revision)

    @property
    def overwrite(self) -> bool:
        """Whether to replace answers of other work."""
        return self.settings.overwrite

    def __call__(self, source: str, output: Path, *, overwrite: bool) -> dict[str, int]:
        """Write the answers to the rows of a file."""
        check = partial(check_output, overwrite=overwrite)
        with open_output(output, "writing answers into", inputs=[source], check=check) as place:
            table = open_rows(source, self.settings, find_reading(self.model))
            predictor = load_predictor(self.opened, self.task, self.loading, self.zero_shot)
            columns = choose_columns(TASKS[self.task].settings)(**self.columns)
            answers = answer_file(
                predictor.with_options(self.answers), table, self.settings, columns
            )
            answers.is_one_of_many = True
            with show_progress("Predicting", None) as progress:
                write_answers(answers, place, progress)
        return asdict(answers.counts)


@uploads_output()
def predict_files(
    one: PredictedFile, inputs: Sequence[str], output: Path, files: FilesSettings
) -> FilesResult:
    """Write a file of answers for each file of rows into a folder, those that are missing."""
    made_with = {"command": one.task, **stamp_model(one.model, one.loading.revision)}
    if one.zero_shot is not None:
        made_with["labels"] = json.dumps(asdict(one.zero_shot))
    parts, suffixes = (one.settings, one.answers, one.loading), (".jsonl", *ROW_WRITERS)
    return make_files(one, inputs, output, files, suffixes, made_with, *parts, **one.columns)


def load_predictor(
    model: str | OpenModel,
    name: str,
    loading: EngineSettings,
    zero_shot: ZeroShot | None = None,
) -> AnyPredictor:
    """Load a model of the task of this name, or any for labels that none has learned."""
    if zero_shot is not None:
        return load_zero_shot(zero_shot, model, loading)
    predictor: AnyPredictor = Predictor.take(model, loading)
    if (task := predictor.task.name) != name:
        shown = model if isinstance(model, str) else model.title
        raise SettingsError(f"{shown} is a model for the task {task}; use `bertkit {task}`")
    return predictor
