"""Predict the rows of a file: answer n belongs to row n of the input."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertkit.base.files import durable_file
from bertkit.base.progress import ProgressBar
from bertkit.base.settings import Settings
from bertkit.base.surrogates import replace_surrogates
from bertkit.batch_jobs.predict.examples import ExampleFile
from bertkit.batch_jobs.predict.outputs import WRITERS
from bertkit.batch_jobs.predict.settings import PredictSettings
from bertkit.data.tables.record import RowReport
from bertkit.data.tables.rows import Table
from bertkit.inference.prediction_counts import PredictionCounts
from bertkit.inference.predictor import Predictor
from bertkit.tasks.task import Task


@dataclass
class Answers:
    """A stream of answers to examples, which can be read once.

    Attributes:
        predictor: the model.
        examples: the examples to predict.
        report: problems of the file's rows read so far; None if there is no file.
        counts: statistics of the examples read so far.
        elapsed_seconds: time without loading the model; 0 until all answers were read.
    """

    predictor: Predictor[Any, Any, Any]
    examples: Iterable[Any]
    report: RowReport | None = None
    counts: PredictionCounts = field(default_factory=PredictionCounts)
    elapsed_seconds: float = 0.0

    @property
    def task(self) -> Task[Any, Any]:
        """The task of the model."""
        return self.predictor.task

    def read(self, progress: ProgressBar) -> Iterator[tuple[Any, Any]]:
        """Yield examples with their answers, in order."""
        started = time.monotonic()
        for row in self.predictor.stream_examples(self.examples, self.counts):
            yield row
            progress.advance(1)
        self.elapsed_seconds = time.monotonic() - started


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
    return Answers(predictor, file, file.report)


def write_answers(answers: Answers, output: Path, progress: ProgressBar) -> None:
    """Write all answers atomically to a file; the caller must hold its lock."""
    rows = (answers.task.to_json(prediction) for _, prediction in answers.read(progress))
    with durable_file(output) as file:
        WRITERS[output.suffix.lower()](file, rows)
