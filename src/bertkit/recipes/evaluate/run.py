"""Evaluate a fine-tuned model on labeled data."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertkit.base.errors import (
    BertkitError,
    InputError,
    SettingsError,
    StorageError,
    pluralize,
    storage_errors,
)
from bertkit.base.files import durable_file, make_folder, remove_folder
from bertkit.base.json_files import with_nulls, write_json
from bertkit.base.members import find_member
from bertkit.base.output import list_names
from bertkit.base.progress import show_progress
from bertkit.base.settings import Settings
from bertkit.checkpoints.file_names import CONFIG_FILE
from bertkit.checkpoints.formats import describe_model
from bertkit.checkpoints.run_folder import METRICS_FILE
from bertkit.data.tables.records import RecordTable, open_records
from bertkit.data.tables.rows import Table
from bertkit.data.writers import write_jsonl
from bertkit.inference.predictor import AnyPredictor, PredictionCounts
from bertkit.recipes.finetune.card import SavedFineTuning
from bertkit.recipes.finetune.data import SetCounts, TaskSet
from bertkit.recipes.model_card import REPORT_FILE
from bertkit.recipes.settings import EvaluateSettings
from bertkit.reports.figures.confusion_matrix import list_rows
from bertkit.reports.notebook import show_metrics
from bertkit.reports.report import Report, write_report
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.saved import list_scorer_files
from bertkit.tasks.sections import CHANCE, build_sections, state_metric
from bertkit.tasks.settings import with_columns
from bertkit.tasks.table import TASKS
from bertkit.tasks.task import AnyTask, TaskPrediction


@dataclass(frozen=True)
class EvaluateResult:
    """The result of an evaluation."""

    model: str  # as the user named it, or the task of a loaded one
    task: AnyTask
    labeled: TaskSet
    predictions: list[TaskPrediction]
    evaluation: Evaluation

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics by name."""
        return dict(self.evaluation.metrics)

    def _repr_html_(self) -> str:
        """Show the metrics in a notebook."""
        return show_metrics(f"{self.model}, {self.labeled.name}", self.evaluation.metrics)

    @property
    def data_problems(self) -> list[str]:
        """Lines that describe the data problems of the file."""
        return self.labeled.problems + self.labeled.describe(self.task)


def evaluate(
    load: Callable[[], AnyPredictor],
    source: Table | RecordTable,
    settings: EvaluateSettings,
    columns: Settings,
    name: str | None = None,
) -> EvaluateResult:
    """Evaluate a model on a labeled file, a GLUE folder, or a data set of the Hub.

    The model is loaded once the file is known; its name is shown, by default its task. `columns`
    are column names that override the model's own settings. It is an `InputError` if columns are
    missing, too many rows are broken, or most of the labels are unknown to the model.
    """
    table = open_records(source, settings, split=settings.split)
    if table.is_standard_input:
        raise InputError("standard input can't be evaluated; write it to a file first")
    predictor = load()
    task = predictor.task
    labeled = TaskSet.read(type(task), table, with_columns(task.settings, columns), task.labels)
    counted, predictions = PredictionCounts(), list[TaskPrediction]()
    decode = task.for_evaluation(len(labeled.examples)).decode
    with show_progress("Evaluating", len(labeled.examples)) as progress:
        for window in predictor.stream_windows(labeled.examples, counted):
            predictions += map(decode, *window.encoded, window.computed)
            progress.advance(len(window.encoded))
    labeled.count(task, counted)
    evaluation = task.score(labeled.examples, predictions).evaluate()
    warnings = (*warn_of_training_rows(predictor, labeled), *evaluation.warnings)
    evaluation = replace(evaluation, warnings=warnings)
    return EvaluateResult(name or task.name, task, labeled, predictions, evaluation)


def warn_of_training_rows(predictor: AnyPredictor, labeled: TaskSet) -> list[str]:
    """Warn if the file is the one that the model was trained on, by the checksum in its record."""
    opened, sha256 = predictor.loaded.opened, labeled.counts.sha256
    if opened is None:
        return []
    try:
        saved = SavedFineTuning.load(find_member(opened.folder, METRICS_FILE))
    except BertkitError:  # there is none, or it is damaged, which was announced with the model
        return []
    if saved.train.sha256 != sha256:
        return []
    advice = "evaluate it on rows that it hasn't seen"
    if saved.dev.sha256 == sha256:
        number = pluralize(saved.dev.num_examples, "row")
        advice = f"its report has those of the {number} held out; or {advice}"
    trained = f"the model was trained on {labeled.name} (same SHA-256)"
    return [f"{trained}: metrics on it say nothing about other texts; {advice}"]


ANSWERS_FILE = "answers.jsonl"
MAX_MATRIX_LABELS = 1000  # the square of 50,000 has 2.5 billion cells


def check_output(output: Path, *, overwrite: bool) -> None:
    """Raise an error if writing to the folder would destroy other files."""
    with storage_errors(output, "read"):
        if output.exists() and not output.is_dir():
            raise StorageError(f"{output} is a file, and must be a folder; name another --output")
        if (output / CONFIG_FILE).exists():
            raise SettingsError(
                f"{output} is a model folder, whose report would be replaced; name another --output"
            )
        if list_names(output) and not overwrite:
            raise SettingsError(f"{output} isn't empty; name another --output, or add --overwrite")


def write_evaluation(output: Path, result: EvaluateResult) -> None:
    """Replace the files of an evaluation; `metrics.json`, which completes it, comes last."""
    make_folder(output)
    scorer_files = (name for entry in TASKS.values() for name in entry.load().scorer_files)
    for name in (METRICS_FILE, REPORT_FILE, ANSWERS_FILE, *scorer_files):
        remove_folder(output / name)
    # With the location of each example, because rows may be missing.
    answers = (
        {"place": example.place, **prediction.to_json()}
        for example, prediction in zip(result.labeled.examples, result.predictions, strict=True)
    )
    with durable_file(output / ANSWERS_FILE) as file:
        write_jsonl(file, answers)
    labeled, predictions = result.labeled, result.predictions
    for name, content in list_scorer_files(result.task, labeled.examples, predictions).items():
        write_json(output / name, content)
    number, metric = result.labeled.counts.num_examples, result.task.metric
    where = f"{pluralize(number, 'row')} of {result.labeled.counts.name}"
    chance = measure_chance(result.labeled.counts, metric)
    report = Report(
        state_metric(metric, where, result.metrics, result.evaluation.intervals, chance),
        f"The model’s task is {result.task.name}. {CHANCE if chance else ''}".strip(),
        build_sections(result.evaluation),
        name=describe_model(result.model),
    )
    write_report(output / REPORT_FILE, report)
    write_json(output / METRICS_FILE, summarize(result))


def measure_chance(counts: SetCounts, metric: str) -> dict[str, float]:
    """Measure the accuracy of always predicting the most frequent label; empty if undefined."""
    if metric != "accuracy" or not counts.labels:
        return {}
    return {metric: max(counts.labels.values()) / sum(counts.labels.values())}


def summarize(result: EvaluateResult) -> dict[str, Any]:
    """Return an evaluation as JSON; undefined values are null."""
    evaluation = result.evaluation
    content = {
        "task": result.task.name,
        "data": result.labeled.counts.model_dump(),
        "metrics": evaluation.metrics,
        "intervals": evaluation.intervals,
        "confusion": describe_confusion(evaluation),
        "calibration": describe_calibration(evaluation),
        "mistakes": [vars(mistake) for mistake in evaluation.mistakes],
        "warnings": evaluation.warnings,
    }
    summary: dict[str, Any] = with_nulls(content)
    return summary


def describe_confusion(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return the matrix `[true, predicted]`, sparse for very many labels; None if it has none."""
    labels, confusion = evaluation.labels, evaluation.confusion
    if confusion is None:
        return None
    if len(labels) > MAX_MATRIX_LABELS:
        return {"labels": labels, "pairs": [[*pair, count] for pair, count in confusion.items()]}
    return {"labels": labels, "counts": list_rows(confusion, len(labels))}


def describe_calibration(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return confidence, accuracy and calibration error; None if answers have no confidence."""
    confidences, is_right = evaluation.confidences, evaluation.is_right
    error = evaluation.calibration
    if confidences is None or is_right is None or error is None:
        return None
    return {
        "confidence": float(confidences.mean()),
        "accuracy": float(is_right.mean()),
        "expected_calibration_error": error.value,
        "num_bins": error.num_bins,
        "interval": None if error.low is None else [error.low, error.high],
    }
