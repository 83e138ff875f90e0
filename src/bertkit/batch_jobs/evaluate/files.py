"""The files of an evaluation: report, metrics, answers, and inputs of official scorers."""

from pathlib import Path
from typing import Any

from bertkit.base.errors import SettingsError, StorageError, storage_errors
from bertkit.base.files import durable_file, make_folder, remove_folder, with_nulls, write_json
from bertkit.base.output import list_names
from bertkit.batch_jobs.evaluate.run import EvaluateResult
from bertkit.batch_jobs.predict.outputs import write_jsonl
from bertkit.checkpoints.file_names import CONFIG_FILE
from bertkit.checkpoints.identity import name_model
from bertkit.reports.figures.confusion_matrix import list_rows
from bertkit.reports.report import Report, write_report
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.sections import build_sections
from bertkit.tasks.table import TASKS

METRICS_FILE = "metrics.json"
REPORT_FILE = "report.html"
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
    """Write all files, `metrics.json` last: it marks the evaluation as complete.

    Files of an earlier evaluation are removed first, so that no stale file remains.
    """
    make_folder(output)
    scorer_files = (name for entry in TASKS.values() for name in entry.load().scorer_files)
    for name in (METRICS_FILE, REPORT_FILE, ANSWERS_FILE, *scorer_files):
        remove_folder(output / name)
    # With the location of each example, because rows may be missing.
    answers = (
        {"place": example.place, **result.task.to_json(prediction)}
        for example, prediction in zip(result.found.examples, result.predictions, strict=True)
    )
    with durable_file(output / ANSWERS_FILE) as file:
        write_jsonl(file, answers)
    for name, content in result.task.prediction_files(
        result.found.examples, result.predictions
    ).items():
        write_json(output / name, content)
    report = Report(
        f"{name_model(result.model)} on {result.counts.name}",
        f"A model for the task {result.task.name}, evaluated on {result.counts.num_examples:,}"
        " examples.",
        build_sections(result.evaluation),
    )
    write_report(output / REPORT_FILE, report)
    write_json(output / METRICS_FILE, summarize(result))


def summarize(result: EvaluateResult) -> dict[str, Any]:
    """Return an evaluation as JSON; undefined values are null."""
    evaluation = result.evaluation
    content = {
        "task": result.task.name,
        "data": result.counts.model_dump(),
        "metrics": evaluation.metrics,
        "intervals": evaluation.intervals,
        "confusion": describe_confusion(evaluation),
        "calibration": describe_calibration(evaluation),
        "mistakes": [vars(mistake) for mistake in evaluation.mistakes],
        "warnings": evaluation.warnings,
    }
    found: dict[str, Any] = with_nulls(content)
    return found


def describe_confusion(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return the labels and confusion matrix `[true, predicted]`; None if the task has none.

    With very many labels, the matrix is sparse: triples of true label, predicted label and count.
    """
    labels, confusion = evaluation.labels, evaluation.confusion
    if confusion is None:
        return None
    if len(labels) > MAX_MATRIX_LABELS:
        return {"labels": labels, "pairs": [[*pair, count] for pair, count in confusion.items()]}
    return {"labels": labels, "counts": list_rows(confusion, len(labels))}


def describe_calibration(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return confidence, accuracy and calibration error; None if answers have no confidence."""
    confidences, is_right = evaluation.confidences, evaluation.is_right
    found = evaluation.calibration
    if confidences is None or is_right is None or found is None:
        return None
    return {
        "confidence": float(confidences.mean()),
        "accuracy": float(is_right.mean()),
        "expected_calibration_error": found.value,
        "num_bins": found.num_bins,
        "interval": None if found.low is None else [found.low, found.high],
        "error_if_calibrated": found.if_calibrated,
    }
