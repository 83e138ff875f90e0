"""Line charts: several series over one axis, distinguished by color and by dash pattern.

Dashes keep series distinct for color-blind readers and in black-and-white print. A band around a
series shows the spread of its runs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar
from xml.etree import ElementTree as ET

from bertkit.reports.figures.svg import (
    LARGEST,
    SMALLEST,
    Axis,
    add_axes,
    add_group,
    add_text,
    format_tick,
    logarithmic_ticks,
    new_drawing,
    round_ticks,
    serialize,
    series_style,
)
from bertkit.reports.text import Cell, MetricCell, format_percent, shorten

WIDTH, HEIGHT = 460, 260
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 12, 46
MAX_POINTS = 600
MAX_MARKED_POINTS = 40
MAX_ROWS = 50

Point = tuple[float, float]
Extent = tuple[float, float, float]
Values = TypeVar("Values", Point, Extent)


@dataclass(frozen=True)
class Series:
    """A named line through points; values that aren't finite leave a gap."""

    name: str  # in the legend
    points: Sequence[Point]  # (x, y), from left to right
    # (x, lowest, highest), from left to right, such as the spread of several seeds
    band: Sequence[Extent] = ()


@dataclass(frozen=True)
class LineChart:
    """One or more series over one horizontal axis."""

    title: str
    x_label: str  # with its unit
    unit: str  # the quantity on the y-axis, with its unit
    series: Sequence[Series]  # one without a finite point is omitted
    is_percent: bool = False  # whether y values are fractions of 1, shown as percentages
    starts_at_zero: bool = False  # whether the y-axis does, or begins lower for negative values
    is_logarithmic: bool = False  # the x-axis; points at x ≤ 0 are then omitted

    def draw(self) -> str:
        """Return the chart as an SVG element for an HTML page."""
        svg = new_drawing(WIDTH, HEIGHT, self.title, self.describe())
        across_upwards = self._axes()
        if across_upwards is None:
            add_text(svg, WIDTH / 2, HEIGHT / 2, "no data yet")
            return serialize(svg)
        add_axes(svg, *across_upwards, self.x_label)
        for index, series in enumerate(self.series):
            group = add_group(svg, series_style(index))
            self._add_band(group, series, *across_upwards)
            self._add_line(group, series, *across_upwards)
        return serialize(svg)

    def describe(self) -> str:
        """Return a description in words, for screen readers."""
        parts = []
        for series in self.series:
            points = self._drawable(series.points)
            if points:
                (first_x, first), (last_x, last) = points[0], points[-1]
                parts.append(
                    f"{shorten(series.name)}: from {self._show(first)} at {format_tick(first_x)}"
                    f" to {self._show(last)} at {format_tick(last_x)}"
                )
        return f"{shorten(self.unit)} over {shorten(self.x_label)}. " + "; ".join(parts)

    def legend(self) -> list[tuple[str, str]]:
        """Return the style and the name of each series."""
        return [
            (series_style(index), shorten(series.name))
            for index, series in enumerate(self.series)
            if self._drawable(series.points)
        ]

    def tabulate(self) -> tuple[list[str], list[list[Cell]]]:
        """Return a table of the values, at a subset of the points of each series."""
        columns: list[dict[float, Cell]] = []
        for series in self.series:  # as an interval where it has a band
            extents = {x: (low, high) for x, low, high in series.band}
            points = _thin(series.points, MAX_ROWS)
            cells = {x: MetricCell(y, self.is_percent, extents.get(x)) for x, y in points}
            columns.append({**cells})
        places = sorted({x for column in columns for x in column if math.isfinite(x)})
        rows: list[list[Cell]] = [
            [int(x) if float(x).is_integer() else x, *(column.get(x, "") for column in columns)]
            for x in places
        ]
        return [self.x_label, *(shorten(series.name) for series in self.series)], rows

    def _axes(self) -> tuple[Axis, Axis] | None:
        """Return both axes, or None if there is no point to draw."""
        points = [point for series in self.series for point in self._drawable(series.points)]
        if not points:
            return None
        xs, ys = [x for x, _ in points], [y for _, y in points]
        for series in self.series:
            for x, low, high in self._drawable(series.band):
                xs.append(x)
                ys += (low, high)
        lowest = min(0.0, *ys) if self.starts_at_zero else min(ys)
        ticks = (
            logarithmic_ticks(min(xs), max(xs))
            if self.is_logarithmic
            else round_ticks(min(xs), max(xs), 6)
        )
        across = Axis(ticks, LEFT, WIDTH - RIGHT, is_logarithmic=self.is_logarithmic)
        ticks = round_ticks(lowest, max(ys), 5)
        return across, Axis(ticks, HEIGHT - BOTTOM, TOP, is_percent=self.is_percent)

    def _add_band(self, group: ET.Element, series: Series, across: Axis, upwards: Axis) -> None:
        for is_drawable, run in groupby(_thin(series.band), self._is_drawable):
            if is_drawable:
                band = list(run)
                places = [f"{across.place(x)},{upwards.place(high)}" for x, _, high in band]
                places += [f"{across.place(x)},{upwards.place(low)}" for x, low, _ in band[::-1]]
                ET.SubElement(group, "polygon", {"class": "band", "points": " ".join(places)})

    def _add_line(self, group: ET.Element, series: Series, across: Axis, upwards: Axis) -> None:
        for is_drawable, run in groupby(_thin(series.points), self._is_drawable):
            if is_drawable:
                places = [f"{across.place(x)},{upwards.place(y)}" for x, y in run]
                ET.SubElement(group, "polyline", {"points": " ".join(places)})
        points = self._drawable(series.points)
        for x, y in points if len(points) <= MAX_MARKED_POINTS else points[-1:]:
            place = {"cx": str(across.place(x)), "cy": str(upwards.place(y)), "r": "3"}
            circle = ET.SubElement(group, "circle", place)
            words = f"{shorten(series.name)}: {self._show(y)} at {format_tick(x)}"
            ET.SubElement(circle, "title").text = words

    def _show(self, value: float) -> str:
        return format_percent(value) if self.is_percent else format_tick(value)

    def _is_drawable(self, values: tuple[float, ...]) -> bool:
        is_on_axis = not self.is_logarithmic or values[0] >= SMALLEST
        return is_on_axis and all(abs(value) <= LARGEST for value in values)

    def _drawable(self, all_values: Sequence[Values]) -> list[Values]:
        return [values for values in all_values if self._is_drawable(values)]


def _thin(values: Sequence[Values], limit: int = MAX_POINTS) -> Sequence[Values]:
    """Return at most `limit` values, evenly spaced, including the last one."""
    stride = max(1, math.ceil(len(values) / limit))
    return values[::-stride][::-1]
