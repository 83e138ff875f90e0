"""The interface of all figures, and figures as standalone SVG files."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Protocol
from xml.etree import ElementTree as ET

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import InputError, MissingExtraError, SettingsError
from bertkit.base.extras import describe_install
from bertkit.base.files import write_file
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
from bertkit.reports.text import Cell, count_columns, shorten

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
    for index, (style, name) in enumerate(picture.legend()):
        y = MARGIN + TITLE_HEIGHT + ENTRY_HEIGHT * index + 6
        add_line(add_group(svg, style), MARGIN, y, MARGIN + 24, y)
        short = shorten(name, int(drawn_width // COLUMN_WIDTH))
        add_text(svg, MARGIN + 32, y + 4, short, anchor="start")
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


DOTS_PER_INCH = 300  # what journals require
SVG_DOTS_PER_INCH = 96


class WritablePicture:
    """A picture that writes itself to a file, and that notebooks display."""

    def legend(self) -> list[tuple[str, str]]:
        """Return the entries of a legend, none where the drawing explains itself."""
        return []

    def write(self: Picture, path: str | Path) -> FileRecord:
        """Write the figure as SVG or PNG, chosen by the file extension."""
        return write_picture(Path(path), self)

    def _repr_svg_(self: Picture) -> str:
        """Return the SVG that notebooks display."""
        return render_svg(self)


def write_picture(path: Path, picture: Picture) -> FileRecord:
    """Write a picture in the format that the file extension names."""
    render = RENDERERS.get(path.suffix.lower())
    if render is None:
        raise SettingsError(f"{path} must end with {' or '.join(RENDERERS)}")
    return write_file(path, render(picture))


def render_png(picture: Picture) -> bytes:
    """Render the SVG file of a picture as PNG, with 300 dpi and light colors.

    A character that no installed font has is drawn as an empty box.
    """
    svg, zoom = render_svg(picture), DOTS_PER_INCH / SVG_DOTS_PER_INCH
    try:
        resvg = import_module("resvg_py")
    except ImportError as error:
        raise MissingExtraError(
            f"resvg_py, which draws PNGs, can't be loaded ({error});"
            f" {describe_install('plots')}, or write an .svg, which needs nothing"
        ) from None
    drawn: bytes = resvg.svg_to_bytes(svg_string=svg, zoom=zoom)
    if drawn == resvg.svg_to_bytes(svg_string=svg, zoom=zoom, skip_system_fonts=True):
        raise MissingExtraError(
            "no font is installed that a PNG's text could be drawn with; install one such as"
            " DejaVu Sans, or write an .svg, which needs none"
        )
    return drawn


RENDERERS: dict[str, Callable[[Picture], bytes]] = {
    ".svg": lambda picture: render_svg(picture).encode(),
    ".png": render_png,
}
