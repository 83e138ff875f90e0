"""Line charts as SVG: axes, round ticks, several series and a legend; colours come from the page.

Series are told apart by colour and by dashes, so that neither colour-blind readers nor a printer
lose them. The elements are built as a tree, whose serialisation escapes all text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.etree import ElementTree as ET

WIDTH, HEIGHT = 460, 260
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 12, 46
NUM_STYLES = 6
MAX_POINTS = 600
MAX_MARKED_POINTS = 40

Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """A named line through points; a value that isn't finite leaves a gap."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class LineChart:
    """Some series over one horizontal axis.

    Attributes:
        title: what is shown.
        x_label: what runs to the right, with its unit.
        y_label: what runs upwards, with its unit.
        series: the lines; those without a finite point are left out.
        is_percent: the vertical values are shares of 1, to be shown as percentages.
        starts_at_zero: the vertical axis begins at 0.
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    is_percent: bool = False
    starts_at_zero: bool = False


@dataclass(frozen=True)
class _Axis:
    """A linear map from values to places in the drawing, with its ticks."""

    ticks: tuple[float, ...]
    start: float
    stop: float

    def place(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return round(self.start + (value - low) / (high - low) * (self.stop - self.start), 2)


def draw_line_chart(chart: LineChart) -> str:
    """The chart as an SVG element that stands in an HTML page."""
    svg = ET.Element("svg", {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "role": "img", "class": "chart"})
    ET.SubElement(svg, "title").text = chart.title
    ET.SubElement(svg, "desc").text = describe_chart(chart)
    points = [point for series in chart.series for point in _finite(series.points)]
    if not points:
        _add_text(svg, WIDTH / 2, HEIGHT / 2, "no data yet", anchor="middle")
        return ET.tostring(svg, encoding="unicode")
    xs, ys = [x for x, _ in points], [y for _, y in points]
    lowest = min(0.0, *ys) if chart.starts_at_zero else min(ys)
    across = _Axis(round_ticks(min(xs), max(xs), 6), LEFT, WIDTH - RIGHT)
    upwards = _Axis(round_ticks(lowest, max(ys), 5), HEIGHT - BOTTOM, TOP)
    _add_axes(svg, chart, across, upwards)
    for index, series in enumerate(chart.series):
        _add_series(svg, chart, series, f"series series-{index % NUM_STYLES}", (across, upwards))
    return ET.tostring(svg, encoding="unicode")


def describe_chart(chart: LineChart) -> str:
    """The chart in words, for those who don't see it."""
    parts = []
    for series in chart.series:
        points = _finite(series.points)
        if points:
            (first_x, first), (last_x, last) = points[0], points[-1]
            parts.append(
                f"{series.name}: from {_show(chart, first)} at {format_tick(first_x)}"
                f" to {_show(chart, last)} at {format_tick(last_x)}"
            )
    return f"{chart.y_label} over {chart.x_label}. " + "; ".join(parts)


def round_ticks(low: float, high: float, num_intervals: int) -> tuple[float, ...]:
    """Ticks at multiples of 1, 2, 2.5 or 5 times a power of ten that enclose low and high."""
    if low == high:
        margin = abs(low) / 2 or 0.5
        low, high = low - margin, high + margin
    raw = (high - low) / num_intervals
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(index * step for index in range(first, last + 1))


def format_tick(value: float) -> str:
    """A short number: 1.5k, 20M, 0.25."""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            scale = 1e3 if suffix == "k" else limit
            return f"{value / scale:.4g}{suffix}"
    return f"{value:.4g}"


def _show(chart: LineChart, value: float) -> str:
    return f"{100 * value:.4g} %" if chart.is_percent else format_tick(value)


def _finite(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if all(map(math.isfinite, point))]


def _add_axes(svg: ET.Element, chart: LineChart, across: _Axis, upwards: _Axis) -> None:
    grid = ET.SubElement(svg, "g", {"class": "grid"})
    for tick in upwards.ticks:
        y = upwards.place(tick)
        _add_line(grid, LEFT, y, WIDTH - RIGHT, y)
        _add_text(svg, LEFT - 8, y + 4, _show(chart, tick), anchor="end")
    for tick in across.ticks:
        x = across.place(tick)
        _add_line(grid, x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 5)
        _add_text(svg, x, HEIGHT - BOTTOM + 19, format_tick(tick), anchor="middle")
    _add_text(svg, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, chart.x_label, anchor="middle")


def _add_series(
    svg: ET.Element, chart: LineChart, series: Series, style: str, axes: tuple[_Axis, _Axis]
) -> None:
    across, upwards = axes
    group = ET.SubElement(svg, "g", {"class": style})
    for is_finite, run in groupby(
        _thin(series.points), lambda point: all(map(math.isfinite, point))
    ):
        if is_finite:
            places = [f"{across.place(x)},{upwards.place(y)}" for x, y in run]
            ET.SubElement(group, "polyline", {"points": " ".join(places)})
    points = _finite(series.points)
    for x, y in points if len(points) <= MAX_MARKED_POINTS else points[-1:]:
        place = {"cx": str(across.place(x)), "cy": str(upwards.place(y)), "r": "3"}
        circle = ET.SubElement(group, "circle", place)
        ET.SubElement(
            circle, "title"
        ).text = f"{series.name}: {_show(chart, y)} at {format_tick(x)}"


def _thin(points: Sequence[Point]) -> Sequence[Point]:
    """At most some hundred points, evenly chosen, the last one among them."""
    stride = max(1, math.ceil(len(points) / MAX_POINTS))
    return points[::-stride][::-1]


def _add_line(parent: ET.Element, x1: float, y1: float, x2: float, y2: float) -> None:
    ET.SubElement(parent, "line", {"x1": str(x1), "y1": str(y1), "x2": str(x2), "y2": str(y2)})


def _add_text(parent: ET.Element, x: float, y: float, text: str, *, anchor: str) -> None:
    ET.SubElement(parent, "text", {"x": str(x), "y": str(y), "text-anchor": anchor}).text = text
