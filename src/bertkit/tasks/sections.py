"""Report sections for an evaluation."""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from bertkit.base.errors import pluralize
from bertkit.reports.figures.confusion_matrix import ConfusionMatrix
from bertkit.reports.figures.reliability import Bin, ReliabilityCurve, ReliabilityDiagram
from bertkit.reports.mistakes import MarkedText, MistakeRow, Mistakes
from bertkit.reports.report import Callout, Charts, Folded, Section, Table
from bertkit.reports.text import Cell, MetricCell, format_metric
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.metrics.calibration import NUM_BINS, find_reliability

# Metrics by their names as people write them.
NAMES = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "exact": "exact answers",
    "exact_match": "exact answers",
    "f1": "F1",
    "macro_f1": "macro F1",
    "matthews": "Matthews correlation",
    "micro_f1": "micro F1",
    "mrr@10": "MRR@10",
    "ndcg@10": "nDCG@10",
    "pearson": "Pearson correlation",
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "spearman": "Spearman correlation",
}
CHANCE = "Chance is what always predicting the most frequent label achieves."
FEWEST_FOR_CALIBRATION = 200
MAX_METRICS = 200  # rows of the table; there may be one for each label


def build_sections(evaluation: Evaluation, before: Evaluation | None = None) -> list[Section]:
    """Build warnings, metrics, worst mistakes, confusion matrix and reliability diagram."""
    sections: list[Section] = [Callout(warning) for warning in evaluation.warnings]
    sections.append(tabulate_metrics(evaluation))
    if evaluation.mistakes:
        sections.append(list_mistakes(evaluation))
    if (matrix := draw_confusion(evaluation)) is not None:
        sections.append(Charts([matrix], title="Confusions"))
    if (calibration := show_calibration(evaluation, before)) is not None:
        sections.append(calibration)
    return sections


def state_finding(
    metric: str,
    value: float | None,
    where: str,
    beside: str = "",
    interval: tuple[float, float] | None = None,
) -> str:
    """State a result in a line: 77.5 % right (63–88 %; chance 50.0 %) on 40 held-out rows."""
    cell = MetricCell.of(metric, value, interval)
    shown = str(replace(cell, interval=None))
    found = f"{shown} right" if metric == "accuracy" else f"{show_name(metric)} {shown}"
    notes = "; ".join(filter(None, (cell.show_interval(), beside)))
    return f"{found}{f' ({notes})' if notes else ''} on {where}"


def state_metric(
    metric: str,
    where: str,
    metrics: Mapping[str, float | None],
    intervals: Mapping[str, tuple[float, float]],
    baseline: Mapping[str, float | None],
) -> str:
    """State one of the metrics in a line, with its interval and chance."""
    beside = f"chance {format_metric(metric, baseline[metric])}" if metric in baseline else ""
    return state_finding(metric, metrics[metric], where, beside, intervals.get(metric))


def show_name(metric: str) -> str:
    """Return a metric's name as people write it; a label behind it stays as it is."""
    kind, space, label = metric.partition(" ")
    name = NAMES.get(kind, kind.replace("_", " "))
    shown = name if name[1:2].isupper() or name == "chrF" else f"{name[:1].upper()}{name[1:]}"
    return f"{shown}{space}{label}"


def tabulate_metrics(evaluation: Evaluation) -> Table:
    """Build a table of metrics, with intervals if there are any."""
    rows: list[list[Cell]] = []
    for name, value in islice(evaluation.metrics.items(), MAX_METRICS):
        cell = MetricCell.of(name, value, evaluation.intervals.get(name))
        rows.append([show_name(name), cell])
    notes = []
    if evaluation.intervals:
        notes.append("In parentheses: 95 % confidence intervals; accuracy by Wilson’s method.")
    if (num_more := len(evaluation.metrics) - MAX_METRICS) > 0:
        notes.append(f"There are {num_more:,} more, all of them in metrics.json.")
    return Table(["Metric", "Value"], rows, title="Metrics", note=" ".join(notes))


def draw_confusion(evaluation: Evaluation) -> ConfusionMatrix | None:
    """Draw the confusion matrix; None if the task has none."""
    if evaluation.confusion is None:
        return None
    return ConfusionMatrix("Confusion matrix", evaluation.labels, evaluation.confusion)


def show_calibration(evaluation: Evaluation, before: Evaluation | None = None) -> Section | None:
    """Show accuracy over confidence, folded where there are too few examples for it to say much."""
    curves = []
    for name, each in (("before scaling", before), ("as it is", evaluation)):
        if each is None or each.confidences is None or each.is_right is None:
            continue
        bins = [Bin(math.nan, math.nan, 0)] * NUM_BINS  # from 0 to 1, including empty ones
        for one in find_reliability(each.confidences, each.is_right):
            bins[round(one.low * NUM_BINS)] = Bin(one.confidence, one.accuracy, one.count)
        if len(each.confidences):
            curves.append(ReliabilityCurve(name, bins))
    if not curves:
        return None
    diagram, found = ReliabilityDiagram("Reliability", curves), evaluation.calibration
    error = "" if found is None else f" As it is: {found.describe()}."
    note = f"A curve below the diagonal means that the model is overconfident.{error}"
    number = sum(each.count for each in curves[-1].bins)
    if number >= FEWEST_FOR_CALIBRATION:
        return Charts([diagram], title="Calibration", note=note)
    title = f"Calibration, uncertain on only {pluralize(number, 'prediction')}"
    return Folded(title, [Charts([diagram], note=note)])


def list_mistakes(evaluation: Evaluation) -> Mistakes:
    """List the worst mistakes, the worst first, with file names but no folders."""
    return Mistakes(
        [
            MistakeRow(
                [MarkedText(each.text)],
                each.expected,
                each.predicted,
                each.confidence,
                each.place.rpartition("/")[2],
            )
            for each in evaluation.mistakes
        ],
        title="The worst mistakes",
    )
