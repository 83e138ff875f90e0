"""Reliability diagrams: accuracy of a model as a function of its confidence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from bertkit.base.errors import pluralize
from bertkit.reports.figures.svg import (
    Axis,
    add_axes,
    add_box,
    add_group,
    add_line,
    add_text,
    format_tick,
    new_drawing,
    serialize,
    series_style,
)
from bertkit.reports.text import Cell, MetricCell, format_percent, shorten

WIDTH, HEIGHT = 388, 464
LEFT, TOP, SIDE = 52, 12, 312
STRIP_TOP, STRIP_HEIGHT = 380, 56
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class Bin:
    """The examples within one interval of confidence."""

    confidence: float  # mean probability of the predictions; NaN if empty
    accuracy: float  # share of correct predictions; NaN if empty
    count: int

    @property
    def is_drawable(self) -> bool:
        """Whether the bin has examples and finite values."""
        return self.count > 0 and math.isfinite(self.confidence) and math.isfinite(self.accuracy)


@dataclass(frozen=True)
class ReliabilityCurve:
    """The bins of a model: equal widths, from confidence 0 to 1."""

    name: str
    bins: Sequence[Bin]


@dataclass(frozen=True)
class ReliabilityDiagram:
    """Accuracy over confidence, such as before and after temperature scaling.

    A curve below the diagonal means an overconfident model. Below the diagram, bars show the
    number of examples in each bin.

    Source: Guo et al. 2017, On Calibration of Modern Neural Networks, section 2.
    """

    title: str
    curves: Sequence[ReliabilityCurve]
    unit: str = "accuracy"

    def draw(self) -> str:
        """Return the diagram as an SVG element."""
        svg = new_drawing(WIDTH, HEIGHT, self.title, self.describe())
        across = Axis(SHARES, LEFT, LEFT + SIDE, is_percent=True)
        upwards = Axis(SHARES, TOP + SIDE, TOP, is_percent=True)
        add_axes(svg, across, upwards, "confidence")
        add_line(add_group(svg, "guide"), LEFT, TOP + SIDE, LEFT + SIDE, TOP)
        for index, curve in enumerate(self.curves):
            _add_curve(add_group(svg, series_style(index)), curve, across, upwards)
        self._add_counts(svg)
        return serialize(svg)

    def describe(self) -> str:
        """Return a description in words, for screen readers."""
        parts = []
        for curve in self.curves:
            filled = [bin_ for bin_ in curve.bins if bin_.is_drawable]
            if filled:
                most = max(filled, key=lambda bin_: bin_.count)
                parts.append(
                    f"{shorten(curve.name)}: of {sum(bin_.count for bin_ in filled):,} examples"
                    f" {most.count:,} in one bin, with a mean confidence of"
                    f" {format_percent(most.confidence)} and an accuracy of"
                    f" {format_percent(most.accuracy)}"
                )
        return "Accuracy over confidence. " + ("; ".join(parts) or "No data yet")

    def legend(self) -> list[tuple[str, str]]:
        """Return the style and the name of each curve, and of the diagonal."""
        curves = [
            (series_style(index), shorten(curve.name)) for index, curve in enumerate(self.curves)
        ]
        return [*curves, ("guide", "perfect calibration")]

    def tabulate(self) -> tuple[list[str], list[list[Cell]]]:
        """Return a table of the values, one row per bin that isn't empty."""
        rows: list[list[Cell]] = []
        for curve in self.curves:
            name = shorten(curve.name)
            for index, bin_ in enumerate(curve.bins):
                if bin_.is_drawable:
                    low, high = index / len(curve.bins), (index + 1) / len(curve.bins)
                    bounds = f"{100 * low:.0f}–{format_percent(high, 0)}"
                    shares = (
                        MetricCell(bin_.confidence, is_share=True),
                        MetricCell(bin_.accuracy, is_share=True),
                    )
                    rows.append([name, bounds, *shares, bin_.count])
        return ["Curve", "Bin", "Mean confidence", "Accuracy", "Examples"], rows

    def _add_counts(self, svg: ET.Element) -> None:
        """Draw bars for the numbers of examples; the bars of one bin are side by side."""
        most = max((bin_.count for curve in self.curves for bin_ in curve.bins), default=0)
        bottom = STRIP_TOP + STRIP_HEIGHT
        add_line(add_group(svg, "grid"), LEFT, bottom, LEFT + SIDE, bottom)
        if not most:
            add_text(svg, LEFT + SIDE / 2, TOP + SIDE / 2, "no data yet")
            return
        add_text(svg, LEFT - 8, STRIP_TOP + 8, format_tick(most), anchor="end")
        add_text(svg, LEFT - 8, bottom, "0", anchor="end")
        add_text(svg, LEFT + SIDE / 2, bottom + 18, "examples in each bin")
        for index, curve in enumerate(self.curves):
            group = add_group(svg, series_style(index))
            bin_width = SIDE / max(1, len(curve.bins))
            gap = min(2, bin_width / 10)
            width = (bin_width - gap) / len(self.curves)
            for place, bin_ in enumerate(curve.bins):
                if bin_.count:
                    height = STRIP_HEIGHT * bin_.count / most
                    x = LEFT + place * bin_width + gap / 2 + index * width
                    box = add_box(group, x, bottom - height, width, height)
                    ET.SubElement(
                        box, "title"
                    ).text = f"{shorten(curve.name)}: {pluralize(bin_.count, 'example')}"


def _add_curve(group: ET.Element, curve: ReliabilityCurve, across: Axis, upwards: Axis) -> None:
    filled = [bin_ for bin_ in curve.bins if bin_.is_drawable]
    places = [(across.place(bin_.confidence), upwards.place(bin_.accuracy)) for bin_ in filled]
    if len(places) > 1:
        ET.SubElement(group, "polyline", {"points": " ".join(f"{x},{y}" for x, y in places)})
    name = shorten(curve.name)
    for (x, y), bin_ in zip(places, filled, strict=True):
        circle = ET.SubElement(group, "circle", {"cx": str(x), "cy": str(y), "r": "3"})
        ET.SubElement(circle, "title").text = (
            f"{name}: {format_percent(bin_.accuracy)} accuracy at a confidence of"
            f" {format_percent(bin_.confidence)},"
            f" {pluralize(bin_.count, 'example')}"
        )
