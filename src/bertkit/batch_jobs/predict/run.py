"""Predict the rows of a file: answer n belongs to row n of the input."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bertkit.base.files import durable_file
from bertkit.base.progress import ProgressBar
from bertkit.base.settings import Settings
from bertkit.base.surrogates import replace_surrogates
from bertkit.batch_jobs.predict.examples import ExampleFile
from bertkit.batch_jobs.predict.outputs import WRITERS
from bertkit.batch_jobs.predict.settings import PredictSettings
from bertkit.data.tables.record import RowReport, look_up
from bertkit.data.tables.rows import Table
from bertkit.inference.prediction_counts import PredictionCounts
from bertkit.inference.predictor import Predictor
from bertkit.tasks.task import Task


class AnsweredRow(NamedTuple):
    """An example with its prediction.

    Attributes:
        number: of the row, from 1.
        values: of the row by column; empty if there is no file.
        example: the example.
        prediction: the prediction.
    """

    number: int
    values: Mapping[str, Any]
    example: Any
    prediction: Any


@dataclass
class Answers:
    """A stream of answers to examples, which can be read once.

    Attributes:
        predictor: the model.
        examples: the examples to predict.
        file: the file that the examples come from, if they do.
        settings: which columns of the file to keep.
        counts: statistics of the examples read so far.
        elapsed_seconds: time without loading the model; 0 until all answers were read.
    """

    predictor: Predictor[Any, Any, Any]
    examples: Iterable[Any]
    file: ExampleFile | None = None
    settings: PredictSettings = field(default_factory=PredictSettings)
    counts: PredictionCounts = field(default_factory=PredictionCounts)
    elapsed_seconds: float = 0.0

    @property
    def task(self) -> Task[Any, Any]:
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
        for number, (example, prediction) in enumerate(answers, start=1):
            values = {} if self.file is None else self.file.rows.popleft()
            yield AnsweredRow(number, values, example, prediction)
            progress.advance(1)
        self.elapsed_seconds = time.monotonic() - started

    def describe_json(self, row: AnsweredRow) -> dict[str, Any]:
        """Return an answer as JSON data, after the id of its row."""
        name = self.settings.id_column
        return {
            "id": row.number if name is None else _find(row, name),
            **self.task.to_json(row.prediction),
        }

    def describe_row(self, row: AnsweredRow) -> dict[str, Any]:
        """Return the kept columns of a row, then the columns of its answer.

        If a column of both has the same name, those of the answer begin with `predicted_`.
        """
        names = self.settings.keep_columns
        kept = dict(row.values) if names is None else {name: _find(row, name) for name in names}
        found = self.task.to_row(row.prediction)
        if kept.keys() & found.keys():
            found = {f"predicted_{name}": value for name, value in found.items()}
        return {**kept, **found}


def _find(row: AnsweredRow, column: str) -> object:
    """Return the value of a column; None if the row hasn't got it."""
    try:
        return look_up(row.values, column)
    except KeyError:
        return None


def answer_values(predictor: Predictor[Any, Any, Any], values: Sequence[Any]) -> Answers:
    """Return the answers to values given on the command line."""
    make = predictor.task.make_example
    examples = [
        make(replace_surrogates(value), f"text {number}")
        for number, value in enumerate(values, start=1)
    ]
    return Answers(predictor, examples)


def answer_file(
    predictor: Predictor[Any, Any, Any], source: Table, settings: PredictSettings, columns: Settings
) -> Answers:
    """Return the answers to the rows of a file; arguments and errors as in `ExampleFile`."""
    file = ExampleFile(predictor.task, source, settings, columns)
    return Answers(predictor, file, file, settings)


def write_answers(answers: Answers, output: Path, progress: ProgressBar) -> None:
    """Write all answers atomically to a file; the caller must hold its lock."""
    rows = (answers.describe_row(row) for row in answers.read(progress))
    with durable_file(output) as file:
        WRITERS[output.suffix.lower()](file, rows)
