"""Pictures as files: SVG, which scales and can be edited, or PNG, which every program reads."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import MissingExtraError, SettingsError
from bertkit.base.files import write_file
from bertkit.reports.figures.picture import Picture, render_svg

DOTS_PER_INCH = 300  # what journals require
SVG_DOTS_PER_INCH = 96


class WritablePicture:
    """A picture that writes itself to a file, and that notebooks display."""

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


RENDERERS: dict[str, Callable[[Picture], bytes]] = {
    ".svg": lambda picture: render_svg(picture).encode(),
    ".png": render_png,
}
