"""Render an evaluation as text for a terminal."""

from collections.abc import Iterator, Sequence
from itertools import islice

from bertkit.base.wording import pluralize
from bertkit.batch_jobs.evaluate.files import describe_calibration
from bertkit.batch_jobs.evaluate.run import EvaluateResult
from bertkit.reports.figures.confusion_matrix import list_rows, most_confused
from bertkit.reports.text import show
from bertkit.tasks.evaluation import Evaluation

MAX_COLUMNS = 8  # of a confusion matrix that fits a terminal
NAME_COLUMNS, TEXT_COLUMNS = 12, 160
SHOWN_METRICS, SHOWN_MISTAKES, SHOWN_CONFUSIONS = 100, 5, 10


def render(result: EvaluateResult) -> Iterator[str]:
    """Yield lines: metrics, confusion matrix, calibration, worst mistakes, warnings."""
    evaluation = result.evaluation
    yield (
        f"{result.model} on {result.found.name}: {pluralize(result.counts.num_examples, 'example')}"
    )
    shown = {name: show(name, TEXT_COLUMNS) for name in islice(evaluation.metrics, SHOWN_METRICS)}
    width = max(map(len, shown.values()), default=0)
    for name, shown_name in shown.items():
        line = f"  {shown_name:<{width}}  {evaluation.metrics[name]:.4f}"
        if name in evaluation.intervals:
            low, high = evaluation.intervals[name]
            line += f"  ({low:.4f}–{high:.4f})"
        yield line
    if (num_more := len(evaluation.metrics) - SHOWN_METRICS) > 0:  # one for each label
        yield f"  … and {num_more:,} more; --json has all"
    yield from render_confusion(evaluation)
    calibration, values = evaluation.calibration, describe_calibration(evaluation)
    if calibration is not None and values is not None:
        means = "mean confidence {confidence:.4f}, accuracy {accuracy:.4f}; ".format(**values)
        yield means + calibration.describe()
    yield from render_mistakes(evaluation)
    for warning in evaluation.warnings:
        yield f"warning: {warning}"


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
            f" {show(confusion.predicted, TEXT_COLUMNS)} ({confusion.share:.1%})"
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
        yield f"  {mistake.place}: expected {expected}, predicted {predicted}"
        if text := show(mistake.text, TEXT_COLUMNS):
            yield f"    {text}"
