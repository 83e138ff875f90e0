"""Report sections on a run: training curves, speed, incidents, settings and environment."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from pydantic import JsonValue

from bertkit.reports.figures.line_chart import LineChart, Series
from bertkit.reports.report import Paragraph, Section, Table
from bertkit.reports.text import Cell, MetricCell, format_number, shorten
from bertkit.training.history import Columns, TrainingHistory, average

VALUE_COLUMNS = 1000  # width at which a value from a record is shortened
MAX_SHOWN_INCIDENTS, MAX_SHOWN_EVENTS = 20, 8
INCIDENTS = {
    "spike": "loss far above recent losses",
    "not-finite": "loss or gradient not finite: step skipped",
}


@dataclass(frozen=True)
class Across:
    """The x axis of a chart."""

    name: str  # the column in the history
    label: str
    unit: float = 1.0  # the divisor that converts the column to the label's unit


STEPS = Across("step", "step")
MINUTES = Across("elapsed_seconds", "minutes of training", 60.0)


@dataclass(frozen=True)
class Curve:
    """The y axis of a chart."""

    name: str  # the column in the history
    title: str
    unit: str  # the unit or meaning of the values
    is_percent: bool = False  # whether the values are shares of 1
    starts_at_zero: bool = False


# Curves that every run has, whatever its task.
LOSS = Curve("loss", "Loss", "lower is better")
PACE = (
    Curve("learning_rate", "Learning rate", "peak × schedule", starts_at_zero=True),
    Curve("gradient_norm", "Gradient norm before clipping", "norm", starts_at_zero=True),
)
SPEED = (
    Curve("tokens_per_second", "Speed", "tokens per second, without padding", starts_at_zero=True),
    Curve(
        "share_of_peak",
        "Machine use",
        "share of the FLOP/s measured at the start",
        is_percent=True,
        starts_at_zero=True,
    ),
)


def draw_curves(
    history: TrainingHistory, curves: Sequence[Curve], across: Across = STEPS
) -> list[LineChart]:
    """Draw a chart for each curve that has points, with a training and a held-out line."""
    charts = []
    for curve in curves:
        series = [
            Series("training", _line(history.train, curve, across, is_averaged=True)),
            Series("held out", _line(history.held_out, curve, across)),
        ]
        charts.append(_chart(curve, curve.title, across, series))
    return [chart for chart in charts if any(one.points for one in chart.series)]


def compare_curves(
    courses: Sequence[tuple[str, TrainingHistory]], curves: Sequence[Curve], across: Across = STEPS
) -> list[LineChart]:
    """Draw two charts for each curve, training and held-out, with one line per run."""
    charts = []
    for curve in curves:
        training = [
            Series(name, _line(history.train, curve, across, is_averaged=True))
            for name, history in courses
        ]
        held_out = [
            Series(name, _line(history.held_out, curve, across)) for name, history in courses
        ]
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


def tabulate_speed(history: TrainingHistory) -> Table:
    """Tabulate the run's size and speed: the median, and the slowest and fastest tenth."""
    rows: list[list[Cell]] = [["steps", history.num_steps]]
    for name, words, unit in (
        ("tokens", "real tokens read", 1.0),
        ("elapsed_seconds", "minutes of training, with evaluations", 60.0),
    ):
        value = history.train.last(name)
        rows.append([words, math.nan if value is None else value / unit])
    for curve in SPEED:
        values = sorted(filter(math.isfinite, history.train[curve.name]))
        if values:
            tenth = len(values) // 10
            middle, low, high = median(values), values[tenth], values[-1 - tenth]
            rows.append(
                [
                    f"{curve.title.lower()}, {curve.unit}",
                    MetricCell(middle, curve.is_percent, (low, high)),
                ]
            )
    return Table(
        ["What", "Number"],
        rows,
        title="Speed",
        note="Medians over all steps; in parentheses, the 10th and 90th percentile.",
    )


def tabulate_incidents(history: TrainingHistory) -> Section:
    """Tabulate loss spikes and steps that weren't applied."""
    title = "Spikes and skipped steps"
    if not history.incidents:
        return Paragraph("None.", title=title)
    shown = history.incidents[:MAX_SHOWN_INCIDENTS]
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
        for event, number in history.num_incidents.most_common(MAX_SHOWN_EVENTS)
    )
    return Table(
        ["Step", "What", "Loss", "Expected", "Examples"],
        rows,
        title=title,
        note=f"In all: {counts}. The first {len(shown)} are shown.",
    )


def tabulate_settings(values: Mapping[str, JsonValue], title: str = "Settings") -> Table:
    """Tabulate all settings."""
    return Table(
        ["Setting", "Value"], [[_show(name), _show(value)] for name, value in values.items()], title
    )


def tabulate_choices(values: Mapping[str, JsonValue], defaults: Mapping[str, JsonValue]) -> Section:
    """Tabulate the settings that differ from their defaults."""
    title = "Settings that differ from the defaults"
    rows: list[list[Cell]] = [
        [_show(name), _show(value), _show(defaults[name]) if name in defaults else "no default"]
        for name, value in values.items()
        if name not in defaults or defaults[name] != value
    ]
    if not rows:
        return Paragraph("All settings have their defaults.", title=title)
    return Table(["Setting", "Value", "Default"], rows, title)


def tabulate_environment(versions: Mapping[str, str]) -> Table:
    """Tabulate the software versions and the machine at the start of the run."""
    return Table(
        ["What", "Version or value"],
        tabulate_settings(versions).rows,
        title="Programs and machine",
        note="As recorded when the run started.",
    )


def _show(value: JsonValue) -> str:
    """Format a value from a record or a log, which may be of any type."""
    if value is None:
        return "none"
    return shorten(str(value), VALUE_COLUMNS)


def _show_loss(value: JsonValue) -> str:
    """Format a loss from a log, which may be of any type."""
    return format_number(value) if isinstance(value, float) else _show(value)
