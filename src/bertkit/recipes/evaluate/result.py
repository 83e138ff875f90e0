"""What every evaluation has: metrics of a model on data, and the files that show them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from bertkit.base.errors import SettingsError, StorageError, storage_errors
from bertkit.base.files import durable_file, make_folder, remove_folder
from bertkit.base.json_files import with_nulls, write_json
from bertkit.base.output import list_names
from bertkit.checkpoints.file_names import CONFIG_FILE
from bertkit.checkpoints.formats import describe_model
from bertkit.checkpoints.run_folder import METRICS_FILE
from bertkit.data.writers import write_jsonl
from bertkit.recipes.model_card import REPORT_FILE
from bertkit.reports.figures.confusion_matrix import list_rows
from bertkit.reports.notebook import show_metrics
from bertkit.reports.report import Report, write_report
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.sections import CHANCE, build_sections, state_metric
from bertkit.tasks.table import TASKS

ANSWERS_FILE = "answers.jsonl"
MAX_MATRIX_LABELS = 1000  # the square of 50,000 has 2.5 billion cells


@dataclass(frozen=True)
class EvaluateResult:
    """The result of an evaluation.

    Attributes:
        model: as the user named it, or the task of a loaded one.
        name: of the data.
        counted: how many units were evaluated, such as 5 examples.
        task: what the model does.
        metric: the main one.
        evaluation: metrics, intervals and mistakes.
        examples: what was evaluated, each with its place in the data.
        predictions: of the examples.
        data: sources and counts, as JSON.
        data_problems: lines about what was left out or changed.
        chance: the main metric of a guess, by its name; empty if it isn't defined.
        scorer_files: files for official scorers, by name.
    """

    model: str
    name: str
    counted: str
    task: str
    metric: str
    evaluation: Evaluation
    examples: Sequence[Any]
    predictions: Sequence[Any]
    data: dict[str, JsonValue]
    data_problems: list[str]
    chance: dict[str, float] = field(default_factory=dict)
    scorer_files: dict[str, dict[str, JsonValue]] = field(default_factory=dict)

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics by name."""
        return dict(self.evaluation.metrics)

    def _repr_html_(self) -> str:
        """Show the metrics in a notebook."""
        return show_metrics(f"{self.model}, {self.name}", self.evaluation.metrics)


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
        for example, prediction in zip(result.examples, result.predictions, strict=True)
    )
    with durable_file(output / ANSWERS_FILE) as file:
        write_jsonl(file, answers)
    for name, content in result.scorer_files.items():
        write_json(output / name, content)
    evaluation, chance = result.evaluation, result.chance
    where = f"{result.counted} of {Path(result.name).name}"
    report = Report(
        state_metric(result.metric, where, result.metrics, evaluation.intervals, chance),
        f"The model’s task is {result.task}. {CHANCE if chance else ''}".strip(),
        build_sections(evaluation),
        name=describe_model(result.model),
    )
    write_report(output / REPORT_FILE, report)
    write_json(output / METRICS_FILE, summarize(result))


def summarize(result: EvaluateResult) -> dict[str, Any]:
    """Return an evaluation as JSON; undefined values are null."""
    evaluation = result.evaluation
    content = {
        "task": result.task,
        "data": result.data,
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
