"""Pictures as files: SVG, which scales and can be edited, or PNG, which every program reads."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import MissingExtraError, SettingsError
from bertkit.base.files import write_file
from bertkit.reports.figures.picture import Picture, render_svg, write_svg

DOTS_PER_INCH = 300  # what journals require
SVG_DOTS_PER_INCH = 96


def write_picture(path: Path, picture: Picture) -> FileRecord:
    """Write a picture in the format that the file extension names."""
    return choose_picture_writer(path)(path, picture)


def choose_picture_writer(path: Path) -> Callable[[Path, Picture], FileRecord]:
    """Return the function that writes the format of the file extension."""
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise SettingsError(
            f"{path} must end with {' or '.join(WRITERS)}, which selects the format"
        )
    return writer


def write_png(path: Path, picture: Picture) -> FileRecord:
    """Write a picture as PNG, see `render_png`."""
    return write_file(path, render_png(picture))


def render_png(picture: Picture) -> bytes:
    """Render the SVG file of a picture as PNG, with 300 dpi and light colors.

    A character that no installed font has is drawn as an empty box.
    """
    svg, resvg = render_svg(picture), _import_resvg()
    zoom = DOTS_PER_INCH / SVG_DOTS_PER_INCH
    drawn: bytes = resvg.svg_to_bytes(svg_string=svg, zoom=zoom)
    if drawn == resvg.svg_to_bytes(svg_string=svg, zoom=zoom, skip_system_fonts=True):
        raise MissingExtraError(
            "no font is installed that a PNG's text could be drawn with; install one such as"
            " DejaVu Sans, or write an .svg, which needs none"
        )
    return drawn


def _import_resvg() -> Any:
    try:
        return import_module("resvg_py")
    except ImportError as error:
        raise MissingExtraError(
            f"resvg_py, which draws PNGs, can't be loaded ({error}); pip install 'bertkit[plots]',"
            " or write an .svg, which needs nothing"
        ) from None


WRITERS: dict[str, Callable[[Path, Picture], FileRecord]] = {".svg": write_svg, ".png": write_png}
