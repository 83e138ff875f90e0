"""SVG elements of drawings, and the colors that they share with the page.

Drawings are element trees, whose serialization escapes all text; `drawing.css` styles them by
class. In a page the colors are CSS variables; in a standalone file they are literal values, because
many SVG viewers don't support variables.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from itertools import count
from string import Template
from xml.etree import ElementTree as ET

from bertkit.reports.text import make_legible, shorten

# The series colors are those of Okabe and Ito, darkened or lightened for contrast. Text
# has a contrast of at least 4.5 : 1 on the shades `right`, `wrong` and `mark`.
LIGHT: Mapping[str, str] = {
    "page": "#ffffff",
    "text": "#1d2329",
    "quiet": "#5b6672",
    "rule": "#dfe3e8",
    "panel": "#f6f7f9",
    "c0": "#0067a5",
    "c1": "#c25100",
    "c2": "#00795a",
    "c3": "#a4447f",
    "c4": "#8a6a00",
    "c5": "#3a3f46",
    "right": "#6db3dd",
    "wrong": "#f0a15e",
    "mark": "#ffdcb5",
}
DARK: Mapping[str, str] = {
    "page": "#14181c",
    "text": "#e4e8ec",
    "quiet": "#98a3ae",
    "rule": "#2d343b",
    "panel": "#1c2126",
    "c0": "#5cb8f0",
    "c1": "#f29a4a",
    "c2": "#3fc79a",
    "c3": "#dd93c3",
    "c4": "#e6cb4d",
    "c5": "#c3cad1",
    "right": "#1c628f",
    "wrong": "#8f4510",
    "mark": "#5e3410",
}
NUM_STYLES = 6
SCALE = 1.25  # the largest factor by which a page enlarges a drawing


def drawing_style(colors: Mapping[str, str]) -> str:
    """Return the style sheet of drawings in the given colors, which have the keys of `LIGHT`."""
    source = resources.files("bertkit.reports").joinpath("drawing.css").read_text(encoding="utf-8")
    return Template(source).substitute(colors)


def series_style(index: int) -> str:
    """Return the CSS classes of a numbered series, which set its color and dash pattern."""
    return f"series series-{index % NUM_STYLES}"


def new_drawing(width: float, height: float, title: str, description: str) -> ET.Element:
    """Create an empty drawing with a title and a description for screen readers."""
    svg = ET.Element(
        "svg",
        {
            "viewBox": f"0 0 {width:g} {height:g}",
            "role": "img",
            "class": "chart",
            "style": f"max-width: {width * SCALE:g}px",
        },
    )
    ET.SubElement(svg, "title").text = shorten(title)
    ET.SubElement(svg, "desc").text = description
    return svg


def serialize(svg: ET.Element) -> str:
    """Return the drawing as text for an HTML page."""
    return make_legible(ET.tostring(svg, encoding="unicode"))


def add_group(parent: ET.Element, style: str) -> ET.Element:
    """Add a group of elements with the same style."""
    return ET.SubElement(parent, "g", {"class": style})


def add_line(parent: ET.Element, x1: float, y1: float, x2: float, y2: float) -> ET.Element:
    """Add a straight line."""
    places = {"x1": f"{x1:g}", "y1": f"{y1:g}", "x2": f"{x2:g}", "y2": f"{y2:g}"}
    return ET.SubElement(parent, "line", places)


def add_box(
    parent: ET.Element, x: float, y: float, width: float, height: float, *, style: str = ""
) -> ET.Element:
    """Add a rectangle with its upper left corner at (x, y)."""
    places = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{width:g}", "height": f"{height:g}"}
    return ET.SubElement(parent, "rect", places | ({"class": style} if style else {}))


def add_text(
    parent: ET.Element, x: float, y: float, text: str, *, anchor: str = "middle", style: str = ""
) -> ET.Element:
    """Add a line of text with its start, middle or end (`anchor`) at x, on the baseline y."""
    places = {"x": f"{x:g}", "y": f"{y:g}", "text-anchor": anchor}
    element = ET.SubElement(parent, "text", places | ({"class": style} if style else {}))
    element.text = text
    return element


def turn(element: ET.Element, degrees: float) -> None:
    """Rotate a text around its anchor point."""
    element.set("transform", f"rotate({degrees:g} {element.get('x')} {element.get('y')})")


LABEL_COLUMNS = 50
MAX_LOGARITHMIC_TICKS = 10
SMALLEST, LARGEST = 1e-150, 1e150  # magnitudes that an axis supports
TICK_MANTISSAS = ((1, 2, 5), (1, 3), (1,))


@dataclass(frozen=True)
class Axis:
    """A mapping from values to coordinates in the drawing."""

    ticks: tuple[float, ...]  # the labeled values in ascending order, first and last at the ends
    start: float  # coordinate of the first tick
    stop: float  # coordinate of the last tick
    is_percent: bool = False  # whether values are fractions of 1, shown as percentages
    is_logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return the coordinate of a value."""
        scale = math.log10 if self.is_logarithmic else float
        low, high = scale(self.ticks[0]), scale(self.ticks[-1])
        share = (scale(value) - low) / (high - low)
        return round(self.start + share * (self.stop - self.start), 2)

    def show(self, value: float) -> str:
        """Format a value as text."""
        return f"{100 * value:.4g} %" if self.is_percent else format_tick(value)


def add_axes(svg: ET.Element, across: Axis, upwards: Axis, x_label: str) -> None:
    """Draw the grid, the ticks of both axes, and the label of the x-axis."""
    grid = add_group(svg, "grid")
    for tick in upwards.ticks:
        y = upwards.place(tick)
        add_line(grid, across.start, y, across.stop, y)
        add_text(svg, across.start - 8, y + 4, upwards.show(tick), anchor="end")
    for tick in across.ticks:
        x = across.place(tick)
        add_line(grid, x, upwards.start, x, upwards.start + 5)
        add_text(svg, x, upwards.start + 19, across.show(tick))
    add_text(
        svg, (across.start + across.stop) / 2, upwards.start + 40, shorten(x_label, LABEL_COLUMNS)
    )


def round_ticks(low: float, high: float, num_intervals: int) -> tuple[float, ...]:
    """Return ticks at multiples of 1, 2, 2.5 or 5 times a power of ten that enclose low and high.

    The magnitude of neither may exceed `LARGEST`.
    """
    largest = max(abs(low), abs(high))
    if high - low <= max(1e-9 * largest, SMALLEST):  # equal up to rounding
        margin = largest / 2 if largest > SMALLEST else 0.5
        low, high = low - margin, high + margin
    raw = (high - low) / num_intervals
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(index * step for index in range(first, last + 1))


def logarithmic_ticks(low: float, high: float) -> tuple[float, ...]:
    """Return about ten round ticks or fewer, nearly evenly spaced, that enclose low and high."""
    if high <= 1.1 * low:
        low, high = low / 2, high * 2
    for mantissas in TICK_MANTISSAS:
        ticks = _enclosing(low, high, mantissas, 1)
        if len(ticks) <= MAX_LOGARITHMIC_TICKS:
            return ticks
    return _enclosing(low, high, (1,), math.ceil(len(ticks) / MAX_LOGARITHMIC_TICKS))


def _enclosing(
    low: float, high: float, mantissas: tuple[int, ...], num_decades: int
) -> tuple[float, ...]:
    """Return round numbers from a power of ten up to the first that reaches `high`."""
    exponents = count(math.floor(math.log10(low) / num_decades) * num_decades, num_decades)
    ticks = []
    for exponent, mantissa in ((power, digit) for power in exponents for digit in mantissas):
        ticks.append(float(f"{mantissa}e{exponent}"))
        if ticks[-1] >= high:
            break
    while len(ticks) > 2 and ticks[1] <= low:
        del ticks[0]
    return tuple(ticks)


def format_tick(value: float) -> str:
    """Format a number in short form: 15k, 20M, 0.25."""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            scale = 1e3 if suffix == "k" else limit
            return f"{value / scale:.4g}{suffix}"
    return f"{value:.4g}"
