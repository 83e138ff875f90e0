"""Evaluations as text for a terminal."""

from collections.abc import Iterator, Sequence
from itertools import islice

from bertkit.recipes.evaluate.result import EvaluateResult, describe_calibration
from bertkit.reports.figures.confusion_matrix import list_rows, most_confused
from bertkit.reports.text import format_metric, format_percent, show
from bertkit.tasks.evaluation import Evaluation

MAX_COLUMNS = 8  # of a confusion matrix that fits a terminal
NAME_COLUMNS, TEXT_COLUMNS = 12, 160
SHOWN_METRICS, SHOWN_MISTAKES, SHOWN_CONFUSIONS = 100, 5, 10


def render(result: EvaluateResult) -> Iterator[str]:
    """Yield lines: warnings, metrics, confusion matrix, calibration, worst mistakes."""
    evaluation = result.evaluation
    yield f"{result.model} on {result.name}: {result.counted}"
    for warning in evaluation.warnings:  # before the figures that they are about
        yield f"warning: {warning}"
    shown = {name: show(name, TEXT_COLUMNS) for name in islice(evaluation.metrics, SHOWN_METRICS)}
    width = max(map(len, shown.values()), default=0)
    for name, shown_name in shown.items():
        value = format_metric(name, evaluation.metrics[name], evaluation.intervals.get(name))
        yield f"  {shown_name:<{width}}  {value}"
    if (num_more := len(evaluation.metrics) - SHOWN_METRICS) > 0:  # one for each label
        yield f"  … and {num_more:,} more; --json has all"
    yield from render_confusion(evaluation)
    calibration, values = evaluation.calibration, describe_calibration(evaluation)
    if calibration is not None and values is not None:
        means = (f"{name} {format_percent(values[name])}" for name in ("confidence", "accuracy"))
        yield f"mean {', '.join(means)}; {calibration.describe()}"
    yield from render_mistakes(evaluation)


def render_confusion(evaluation: Evaluation) -> Iterator[str]:
    """Yield the confusion matrix; with many labels, the most confused pairs instead."""
    if evaluation.confusion is None:
        return
    counts, names = evaluation.confusion, evaluation.labels
    if len(names) <= MAX_COLUMNS:
        yield "confusion matrix (rows: true, columns: predicted)"
        rows: list[list[str | int]] = [["", *names]]
        rows += [
            [name, *row] for name, row in zip(names, list_rows(counts, len(names)), strict=True)
        ]
        yield from align(rows)
        return
    yield "most frequent confusions"
    for confusion in most_confused(counts, names, SHOWN_CONFUSIONS):
        yield (
            f"  {confusion.count:,} of {show(confusion.true, TEXT_COLUMNS)} for"
            f" {show(confusion.predicted, TEXT_COLUMNS)} ({format_percent(confusion.share)})"
        )


def align(rows: Sequence[Sequence[str | int]]) -> Iterator[str]:
    """Align the rows of a table, the first column to the left and the others to the right."""
    cells = [
        [show(cell, NAME_COLUMNS) if isinstance(cell, str) else f"{cell:,}" for cell in row]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *others in cells:
        numbers = "  ".join(
            f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)
        )
        yield f"  {first:<{widths[0]}}  {numbers}"


def render_mistakes(evaluation: Evaluation) -> Iterator[str]:
    """Yield lines about the worst mistakes."""
    if not evaluation.mistakes:
        return
    yield "the worst mistakes"
    for mistake in evaluation.mistakes[:SHOWN_MISTAKES]:
        expected, predicted = (
            show(text, TEXT_COLUMNS) for text in (mistake.expected, mistake.predicted)
        )
        sure = "" if mistake.confidence is None else f" with {format_percent(mistake.confidence)}"
        yield f"  {mistake.place}: expected {expected}, predicted {predicted}{sure}"
        if text := show(mistake.text, TEXT_COLUMNS):
            yield f"    {text}"
