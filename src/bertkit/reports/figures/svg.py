"""SVG elements of drawings, and the colors that they share with the page.

Drawings are element trees, whose serialization escapes all text; `drawing.css` styles them by
class. In a page the colors are CSS variables; in a standalone file they are literal values, because
many SVG viewers don't support variables.
"""

from collections.abc import Mapping
from importlib import resources
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
