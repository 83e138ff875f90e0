"""A run's course, settings and machine as sections of a page."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bertkit.reports.cells import Cell, Interval
from bertkit.reports.figures.line_chart import LineChart, Series
from bertkit.reports.report import Paragraph, Section, Table
from bertkit.reports.text import shorten
from bertkit.training.records.history import Columns, TrainingHistory, average

VALUE_COLUMNS = 1000  # of what a record says of itself
MAX_SHOWN_INCIDENTS, MAX_SHOWN_EVENTS = 20, 8
INCIDENTS = {
    "spike": "loss far above its recent course",
    "not-finite": "loss or gradient not finite: not applied",
}


@dataclass(frozen=True)
class Across:
    """What runs to the right.

    Attributes:
        name: of a column.
        label: what it is called, with its unit.
        unit: how much of the column is one of these.
    """

    name: str
    label: str
    unit: float = 1.0


STEPS = Across("step", "step")
MINUTES = Across("elapsed_seconds", "minutes of training", 60.0)


@dataclass(frozen=True)
class Curve:
    """What runs upwards.

    Attributes:
        name: of a column.
        title: what is shown.
        unit: what its values are.
        is_percent: they are shares of 1.
        starts_at_zero: the axis does.
    """

    name: str
    title: str
    unit: str
    is_percent: bool = False
    starts_at_zero: bool = False


# Of every run, whatever it learns.
LOSS = Curve("loss", "Loss", "lower is better")
PACE = (
    Curve("learning_rate", "Learning rate", "peak × schedule", starts_at_zero=True),
    Curve("gradient_norm", "Gradient, before it is clipped", "norm", starts_at_zero=True),
)
SPEED = (
    Curve("tokens_per_second", "Speed", "real tokens a second", starts_at_zero=True),
    Curve(
        "share_of_peak",
        "Share of the machine’s rate of multiplying matrices",
        "of the rate measured at the start",
        is_percent=True,
        starts_at_zero=True,
    ),
)


def draw_curves(
    course: TrainingHistory, curves: Sequence[Curve], across: Across = STEPS
) -> list[LineChart]:
    """A chart for each curve that has points: the training steps, and the held-out data."""
    charts = []
    for curve in curves:
        series = [
            Series("training", _line(course.train, curve, across, is_averaged=True)),
            Series("held out", _line(course.held_out, curve, across)),
        ]
        charts.append(_chart(curve, curve.title, across, series))
    return [chart for chart in charts if any(one.points for one in chart.series)]


def compare_curves(
    courses: Sequence[tuple[str, TrainingHistory]], curves: Sequence[Curve], across: Across = STEPS
) -> list[LineChart]:
    """For each curve the runs side by side, on training steps and on held-out data."""
    charts = []
    for curve in curves:
        training = [
            Series(name, _line(course.train, curve, across, is_averaged=True))
            for name, course in courses
        ]
        held_out = [Series(name, _line(course.held_out, curve, across)) for name, course in courses]
        charts.append(_chart(curve, f"{curve.title}, training", across, training))
        charts.append(_chart(curve, f"{curve.title}, held out", across, held_out))
    return [chart for chart in charts if any(one.points for one in chart.series)]


def _line(
    columns: Columns, curve: Curve, across: Across, *, is_averaged: bool = False
) -> list[tuple[float, float]]:
    points = [(x / across.unit, y) for x, y in columns.points(across.name, curve.name)]
    return average(points) if is_averaged else points


def _chart(curve: Curve, title: str, across: Across, series: Sequence[Series]) -> LineChart:
    return LineChart(
        title=title,
        x_label=across.label,
        unit=curve.unit,
        series=series,
        is_percent=curve.is_percent,
        starts_at_zero=curve.starts_at_zero,
    )


def tabulate_speed(course: TrainingHistory) -> Table:
    """How fast it was, in the middle and at worst and best."""
    rows: list[list[Cell]] = [["steps", course.num_steps]]
    for name, words, unit in (
        ("tokens", "real tokens read", 1.0),
        ("elapsed_seconds", "minutes of training, evaluations included", 60.0),
    ):
        value = course.train.last(name)
        rows.append([words, math.nan if value is None else value / unit])
    for curve in SPEED:
        values = sorted(filter(math.isfinite, course.train[curve.name]))
        if values:
            tenth = len(values) // 10
            middle, low, high = median(values), values[tenth], values[-1 - tenth]
            rows.append([f"{curve.title.lower()}, {curve.unit}", Interval(middle, low, high)])
    return Table(
        ["What", "Number"],
        rows,
        title="How fast it was",
        note="Of the speeds the median over all steps, and in parentheses where the slowest and"
        " the fastest tenth begin.",
    )


def tabulate_incidents(course: TrainingHistory) -> Section:
    """Losses that stood out, and steps that weren't applied."""
    title = "Spikes and skipped steps"
    if not course.incidents:
        return Paragraph(
            "None: no loss stood far above its recent course, and every step was applied.",
            title=title,
        )
    shown = course.incidents[:MAX_SHOWN_INCIDENTS]
    rows: list[list[Cell]] = [
        [
            _show(row["step"]),
            INCIDENTS.get(row["event"], _show(row["event"])),
            _show_loss(row.get("loss", "")),
            _show_loss(row.get("expected", "")),
            _show(row.get("examples", "")),
        ]
        for row in shown
    ]
    counts = ", ".join(
        f"{number:,} × {INCIDENTS.get(event, _show(event))}"
        for event, number in course.num_incidents.most_common(MAX_SHOWN_EVENTS)
    )
    return Table(
        ["Step", "What", "Loss", "Expected", "Examples"],
        rows,
        title=title,
        note=f"In all: {counts}. The first {len(shown)} are shown.",
    )


def tabulate_settings(values: Mapping[str, Any], title: str = "Settings") -> Table:
    """All settings."""
    return Table(
        ["Setting", "Value"], [[_show(name), _show(value)] for name, value in values.items()], title
    )


def tabulate_choices(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> Section:
    """The settings that aren't what they would be by themselves.

    Args:
        values: of the run.
        defaults: of this bertkit; a setting that it doesn't know has none.
    """
    title = "Settings that differ from the defaults"
    rows: list[list[Cell]] = [
        [_show(name), _show(value), _show(defaults[name]) if name in defaults else "no default"]
        for name, value in values.items()
        if name not in defaults or defaults[name] != value
    ]
    if not rows:
        return Paragraph("None: every setting is the default.", title=title)
    return Table(["Setting", "Value", "Default"], rows, title)


def tabulate_environment(versions: Mapping[str, str]) -> Table:
    """The programs and the machine that the run began with."""
    return Table(
        ["What", "Version or value"],
        [[_show(name), _show(value)] for name, value in versions.items()],
        title="Programs and machine",
        note="As they were when the run began.",
    )


def _show(value: Any) -> str:
    """A value of a record or a log, which may be anything."""
    if value is None:
        return "none"
    return shorten(str(value), VALUE_COLUMNS)


def _show_loss(value: Any) -> str:
    """A loss of a log, which may be anything."""
    return f"{value:.4g}" if isinstance(value, float) else _show(value)
