"""Predict: answer n is that to row n of the input."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertkit.base.files import durable_file
from bertkit.base.progress import ProgressBar
from bertkit.base.settings import Settings
from bertkit.batch_jobs.predict.examples import ExampleFile, make_examples
from bertkit.batch_jobs.predict.outputs import WRITERS
from bertkit.batch_jobs.predict.settings import PredictSettings
from bertkit.data.tables.record import RowReport
from bertkit.inference.prediction_counts import PredictionCounts
from bertkit.inference.predictor import Predictor
from bertkit.tasks.task import Task


@dataclass
class Answers:
    """Answers to examples, given once.

    Attributes:
        predictor: the model.
        examples: what is to be answered.
        report: what was met in the rows of their file, so far; None where there is no file.
        counts: what they were like, so far.
        elapsed_seconds: without loading the model; 0 until all were given.
    """

    predictor: Predictor[Any, Any, Any]
    examples: Iterable[Any]
    report: RowReport | None = None
    counts: PredictionCounts = field(default_factory=PredictionCounts)
    elapsed_seconds: float = 0.0

    @property
    def task(self) -> Task[Any, Any]:
        """What the model is for."""
        return self.predictor.task

    def read(self, progress: ProgressBar | None = None) -> Iterator[tuple[Any, Any]]:
        """Examples with their answers, in order."""
        started = time.monotonic()
        for row in self.predictor.stream_examples(self.examples, self.counts):
            yield row
            if progress is not None:
                progress.advance(1)
        self.elapsed_seconds = time.monotonic() - started

    def as_json(self, progress: ProgressBar | None = None) -> Iterator[dict[str, Any]]:
        """Answers for programs; errors as in `read`."""
        to_json = self.task.to_json
        return (to_json(prediction) for _, prediction in self.read(progress))


def answer_values(predictor: Predictor[Any, Any, Any], values: Sequence[Any]) -> Answers:
    """The answers to inputs as the task takes them; errors as in `make_examples`."""
    return Answers(predictor, make_examples(predictor.task, values))


def answer_file(
    predictor: Predictor[Any, Any, Any], source: str, settings: PredictSettings, columns: Settings
) -> Answers:
    """The answers to the rows of a file; arguments and errors as in `ExampleFile`."""
    file = ExampleFile(predictor.task, source, settings, columns)
    return Answers(predictor, file, file.report)


def write_answers(answers: Answers, output: Path, progress: ProgressBar | None = None) -> None:
    """Write all answers into a file that appears whole or not at all, and that the caller holds."""
    with durable_file(output) as file:
        WRITERS[output.suffix.lower()](file, answers.as_json(progress))
