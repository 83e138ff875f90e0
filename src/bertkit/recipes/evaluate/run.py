"""Evaluate a fine-tuned model on labeled data."""

from collections.abc import Callable
from dataclasses import replace

from bertkit.base.errors import BertkitError, InputError, pluralize
from bertkit.base.members import find_member
from bertkit.base.progress import show_progress
from bertkit.base.settings import Settings
from bertkit.checkpoints.run_folder import METRICS_FILE
from bertkit.data.tables.records import RecordTable, open_records
from bertkit.data.tables.rows import Table
from bertkit.inference.predictor import AnyPredictor, PredictionCounts
from bertkit.models.open_model import OpenModel
from bertkit.recipes.evaluate.result import EvaluateResult
from bertkit.recipes.finetune.data import SetCounts, TaskSet
from bertkit.recipes.finetune.saved import SavedFineTuning
from bertkit.recipes.settings import EvaluateSettings
from bertkit.tasks.saved import list_scorer_files
from bertkit.tasks.settings import with_columns
from bertkit.tasks.task import TaskPrediction


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
    warnings = (*warn_of_training_rows(predictor.loaded.opened, labeled), *evaluation.warnings)
    evaluation = replace(evaluation, warnings=warnings)
    return EvaluateResult(
        name or task.name,
        labeled.name,
        pluralize(labeled.counts.num_examples, "example"),
        task.name,
        task.metric,
        evaluation,
        labeled.examples,
        predictions,
        labeled.counts.model_dump(),
        labeled.problems + labeled.describe(task),
        measure_chance(labeled.counts, task.metric),
        list_scorer_files(task, labeled.examples, predictions),
    )


def warn_of_training_rows(opened: OpenModel | None, labeled: TaskSet) -> list[str]:
    """Warn if the file is the one that the model was trained on, by the checksum in its record."""
    sha256 = labeled.counts.sha256
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


def measure_chance(counts: SetCounts, metric: str) -> dict[str, float]:
    """Measure the accuracy of always predicting the most frequent label; empty if undefined."""
    if metric != "accuracy" or not counts.labels:
        return {}
    return {metric: max(counts.labels.values()) / sum(counts.labels.values())}
