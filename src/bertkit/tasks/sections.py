"""Report sections for an evaluation."""

import math
from itertools import islice

from bertkit.reports.figures.confusion_matrix import ConfusionMatrix
from bertkit.reports.figures.reliability import Bin, ReliabilityCurve, ReliabilityDiagram
from bertkit.reports.mistakes import MarkedText, MistakeRow, Mistakes
from bertkit.reports.report import Callout, Charts, Section, Table
from bertkit.reports.text import Cell, MetricCell
from bertkit.tasks.metrics.calibration import NUM_BINS, find_reliability
from bertkit.tasks.task import Evaluation

MAX_METRICS = 200  # rows of the table; there may be one for each label


def build_sections(evaluation: Evaluation, before: Evaluation | None = None) -> list[Section]:
    """Build warnings, metrics, confusion matrix, reliability diagram and worst mistakes."""
    sections: list[Section] = [Callout(warning) for warning in evaluation.warnings]
    sections.append(tabulate_metrics(evaluation))
    if (matrix := draw_confusion(evaluation)) is not None:
        sections.append(Charts([matrix], title="What is taken for what"))
    if (diagram := draw_reliability(evaluation, before)) is not None:
        found = evaluation.calibration
        error = "" if found is None else f" As it is: {found.describe()}."
        sections.append(
            Charts(
                [diagram],
                title="Calibration",
                note=f"A curve below the diagonal means that the model is overconfident.{error}",
            )
        )
    if evaluation.mistakes:
        sections.append(list_mistakes(evaluation))
    return sections


def tabulate_metrics(evaluation: Evaluation) -> Table:
    """Build a table of metrics, with intervals if there are any."""
    rows: list[list[Cell]] = []
    for name, value in islice(evaluation.metrics.items(), MAX_METRICS):
        rows.append([name, MetricCell.of(name, value, evaluation.intervals.get(name))])
    notes = []
    if evaluation.intervals:
        notes.append("In parentheses: 95 % confidence intervals, by bootstrap over the examples.")
    if (num_more := len(evaluation.metrics) - MAX_METRICS) > 0:
        notes.append(f"There are {num_more:,} more, all of them in metrics.json.")
    return Table(["Metric", "Value"], rows, title="Metrics", note=" ".join(notes))


def draw_confusion(evaluation: Evaluation) -> ConfusionMatrix | None:
    """Draw the confusion matrix; None if the task has none."""
    if evaluation.confusion is None:
        return None
    return ConfusionMatrix("Confusion matrix", evaluation.labels, evaluation.confusion)


def draw_reliability(
    evaluation: Evaluation, before: Evaluation | None = None
) -> ReliabilityDiagram | None:
    """Draw accuracy over confidence; None if the task's predictions have no confidence."""
    curves = [
        ReliabilityCurve(name, _fill_bins(each))
        for name, each in (("before scaling", before), ("as it is", evaluation))
        if each is not None and each.confidences is not None and len(each.confidences)
    ]
    return ReliabilityDiagram("Reliability", curves) if curves else None


def _fill_bins(evaluation: Evaluation) -> list[Bin]:
    """Return all bins from 0 to 1, including empty ones."""
    assert evaluation.confidences is not None
    assert evaluation.is_right is not None
    bins = [Bin(math.nan, math.nan, 0)] * NUM_BINS
    for found in find_reliability(evaluation.confidences, evaluation.is_right):
        bins[round(found.low * NUM_BINS)] = Bin(found.confidence, found.accuracy, found.count)
    return bins


def list_mistakes(evaluation: Evaluation) -> Mistakes:
    """List the worst mistakes, the worst first, with file names but no folders."""
    return Mistakes(
        [
            MistakeRow(
                [MarkedText(each.text)],
                each.expected,
                each.predicted,
                None,
                each.place.rpartition("/")[2],
            )
            for each in evaluation.mistakes
        ],
        title="The worst mistakes",
    )
