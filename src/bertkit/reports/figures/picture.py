"""The interface of all figures, and figures as standalone SVG files."""

from typing import Protocol
from xml.etree import ElementTree as ET

from bertkit.base.errors import InputError
from bertkit.reports.cells import Cell
from bertkit.reports.figures.svg import (
    DARK,
    LIGHT,
    add_box,
    add_group,
    add_line,
    add_text,
    drawing_style,
    serialize,
)
from bertkit.reports.text import count_columns, shorten

MARGIN, TITLE_HEIGHT, ENTRY_HEIGHT = 12, 24, 18
FONT = (
    "font-family: system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial,"
    " 'DejaVu Sans', 'Noto Sans', 'Liberation Sans', sans-serif"  # named fonts for the PNG renderer
)
COLUMN_WIDTH = 7.5


class Picture(Protocol):
    """A figure: a drawing, its legend, and a table of its values."""

    @property
    def title(self) -> str:
        """The title of the figure."""

    @property
    def unit(self) -> str:
        """The quantity or unit of the values."""

    def draw(self) -> str | None:
        """Return an SVG element with all text escaped; None if only a table can show the data."""

    def describe(self) -> str:
        """Return a description in words, for screen readers."""

    def legend(self) -> list[tuple[str, str]]:
        """Return the CSS classes and the name of each part."""

    def tabulate(self) -> tuple[list[str], list[list[Cell]]]:
        """Return the column names and the rows of a table of the values."""


def render_svg(picture: Picture) -> str:
    """Render a picture with its title and its legend as the text of a standalone SVG file.

    It has its own background and follows the reader's dark mode.
    """
    drawing = picture.draw()
    if drawing is None:
        raise InputError(
            f"“{shorten(picture.title)}” has too many parts to be drawn; write its table"
        )
    svg = ET.fromstring(drawing)  # noqa: S314 - our own drawing, made above
    drawn_width, drawn_height = (float(side) for side in svg.attrib["viewBox"].split()[2:])
    title = shorten(f"{picture.title} ({picture.unit})")
    width = max(drawn_width, count_columns(title) * COLUMN_WIDTH) + 2 * MARGIN
    header = MARGIN + TITLE_HEIGHT + ENTRY_HEIGHT * len(picture.legend())
    height = header + drawn_height + MARGIN
    parts = [part for part in svg if part.tag not in ("title", "desc")]
    for part in parts:
        svg.remove(part)
    _make_independent(svg, width, height)
    add_text(svg, MARGIN, MARGIN + 14, title, anchor="start", style="heading")
    _add_legend(svg, picture.legend(), int(drawn_width // COLUMN_WIDTH))
    group = add_group(svg, "drawing")
    group.set("transform", f"translate({MARGIN} {header})")
    group.extend(parts)
    return serialize(svg) + "\n"


def _make_independent(svg: ET.Element, width: float, height: float) -> None:
    """Add what a page otherwise provides: namespace, size, colors, background."""
    svg.set("xmlns", "http://www.w3.org/2000/svg")
    svg.set("viewBox", f"0 0 {width:g} {height:g}")
    svg.set("width", f"{width:g}")
    svg.set("height", f"{height:g}")
    svg.set("style", FONT)
    background = ".background {{ fill: {page}; }}\n"
    light = drawing_style(LIGHT) + background.format(**LIGHT)
    dark = drawing_style(DARK) + background.format(**DARK)
    style = ET.SubElement(svg, "style")
    style.text = f"\n{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n"
    add_box(svg, 0, 0, width, height, style="background")


def _add_legend(svg: ET.Element, entries: list[tuple[str, str]], num_columns: int) -> None:
    for index, (style, name) in enumerate(entries):
        y = MARGIN + TITLE_HEIGHT + ENTRY_HEIGHT * index + 6
        add_line(add_group(svg, style), MARGIN, y, MARGIN + 24, y)
        add_text(svg, MARGIN + 32, y + 4, shorten(name, num_columns), anchor="start")
