"""Evaluate a fine-tuned model on labeled data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.base.errors import InputError
from bertkit.base.progress import show_progress
from bertkit.base.settings import Settings
from bertkit.batch_jobs.evaluate.settings import EvaluateSettings
from bertkit.data.tables.records import open_records
from bertkit.data.tables.rows import Table
from bertkit.inference.engines.names import EngineName, PrecisionName
from bertkit.inference.prediction_counts import PredictionCounts, count_encoded
from bertkit.inference.predictor import Predictor
from bertkit.recipes.finetune.examples import (
    ExampleSet,
    SetCounts,
    check_labels,
    count_set,
    describe_rows,
    describe_set,
    read_set,
)
from bertkit.reports.notebook import show_metrics
from bertkit.tasks.column_settings import with_columns
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.task import Task


@dataclass(frozen=True)
class EvaluatedModel:
    """The model to evaluate, and how to load it.

    Attributes:
        model: a model folder, the id of a model of the Hub, or a loaded model.
        device: auto, cpu, cuda or cuda:N.
        revision: a branch, tag or commit of a model of the Hub.
        engine: the inference engine.
        precision: of the encoder's weights and matrix products.
    """

    model: str | Path | Predictor[Any, Any, Any]
    device: str = "auto"
    revision: str | None = None
    engine: EngineName = "auto"
    precision: PrecisionName = "auto"

    def load(self) -> Predictor[Any, Any, Any]:
        """Load the model, unless it is; errors as in `Predictor.load`."""
        if isinstance(self.model, Predictor):
            return self.model
        return Predictor.load(
            self.model,
            device=self.device,
            revision=self.revision,
            engine=self.engine,
            precision=self.precision,
        )


@dataclass(frozen=True)
class EvaluateResult:
    """The result of an evaluation.

    Attributes:
        model: the model as the user named it, or the task of a loaded one.
        task: the task of the model.
        found: the examples, and the data problems of their file.
        counts: statistics of the examples.
        predictions: the model's predictions, in the order of the examples.
        evaluation: metrics of the predictions against the labels.
    """

    model: str
    task: Task[Any, Any]
    found: ExampleSet
    counts: SetCounts
    predictions: list[Any]
    evaluation: Evaluation

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics by name."""
        return dict(self.evaluation.metrics)

    def _repr_html_(self) -> str:
        """Show the metrics in a notebook."""
        return show_metrics(f"{self.model}, {self.found.name}", self.evaluation.metrics)

    @property
    def data_problems(self) -> list[str]:
        """Lines that describe the data problems of the file."""
        problems = describe_set(self.task, self.found, self.counts)
        return [*describe_rows(self.found), *problems]


def evaluate(
    model: EvaluatedModel, source: Table, settings: EvaluateSettings, columns: Settings
) -> EvaluateResult:
    """Evaluate a model on a labeled file.

    Args:
        model: the model.
        source: a labeled file, a GLUE folder, or a data set of the Hub.
        settings: how the file is read.
        columns: column names that override the model's own settings.

    Raises:
        InputError: columns are missing, too many rows are broken, there are no rows, or most of
            the labels are unknown to the model.
        BertkitError: file or model can't be read.
    """
    table = open_records(source, settings, split=settings.split)
    if table.identity() is None:
        raise InputError("standard input can't be evaluated; write it to a file first")
    predictor = model.load()
    task = predictor.task
    found = read_set(type(task), table, with_columns(task.settings, columns))
    task.check_number(len(found.examples))
    counted, predictions = predict_all(predictor, found.examples)
    counts = count_set(task, found, counted)
    check_labels(task, found, counts)
    evaluation = task.evaluate(found.examples, predictions)
    name = task.name if isinstance(model.model, Predictor) else str(model.model)
    return EvaluateResult(name, task, found, counts, predictions, evaluation)


def predict_all(
    predictor: Predictor[Any, Any, Any], examples: list[Any]
) -> tuple[PredictionCounts, list[Any]]:
    """Predict all examples; return statistics of the examples, and predictions in their order."""
    counts = PredictionCounts()
    predictions: list[Any] = []
    with show_progress("Evaluating", len(examples)) as progress:
        for window in predictor.stream_windows(examples):
            counts.add(count_encoded(predictor.task, window.encoded))
            predictions += (prediction for _, prediction in predictor.decode(window, in_brief=True))
            progress.advance(len(window.examples))
    return counts, predictions
