"""Static report pages: the types of their sections, and rendering to HTML.

A page is self-contained: styles and charts are inline, it has no script, and its content
security policy forbids it to fetch anything. All text is escaped; no text is ever markup.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import ClassVar

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from bertkit.base.checksums import FileRecord
from bertkit.base.files import write_file
from bertkit.reports.figures.picture import Picture
from bertkit.reports.figures.svg import DARK, LIGHT, drawing_style
from bertkit.reports.mistakes import Mistakes
from bertkit.reports.text import Cell, format_cell, format_percent, make_legible, shorten

_BEFORE_PERCENT = re.compile(r"(?<=\d) (?=%)")  # where a line must not end


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of text."""

    kind: ClassVar[str] = "paragraph"
    text: str
    title: str = ""
    note: str = ""


@dataclass(frozen=True)
class Callout(Paragraph):
    """A problem that a reader must not miss, in a colored box."""

    kind: ClassVar[str] = "callout"


@dataclass(frozen=True)
class Command(Paragraph):
    """Shell commands, one per line."""

    kind: ClassVar[str] = "command"


@dataclass(frozen=True)
class Table:
    """A table; numbers and intervals are right-aligned, with thousands separators."""

    kind: ClassVar[str] = "table"
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    note: str = ""


@dataclass(frozen=True)
class Bar:
    """One bar of a bar chart."""

    name: str
    share: float  # the length, as a fraction of 1; negative values and NaN have length 0
    label: str  # the value as text, shown beside the bar
    is_highlighted: bool = False
    # the interval (low, high) of the value, drawn as a whisker
    extent: tuple[float, float] | None = None


@dataclass(frozen=True)
class Bars:
    """A bar chart of shares; the longest bar fills the width."""

    kind: ClassVar[str] = "bars"
    bars: Sequence[Bar]
    title: str = ""
    note: str = ""

    def whisker_percent(self, extent: tuple[float, float]) -> tuple[float, float]:
        """Return the start and the length of a whisker, in percent of the available width."""
        low, high = map(self.width_percent, extent)
        return low, round(high - low, 2)

    def width_percent(self, share: float) -> float:
        """Return the width of a bar of a share in percent of the available width."""
        lengths = [end for bar in self.bars for end in (bar.share, *(bar.extent or ()))]
        longest = max(filter(math.isfinite, lengths), default=0.0)
        if not math.isfinite(share) or longest <= 0:
            return 0.0
        return round(100 * max(0.0, share) / longest, 2)


@dataclass(frozen=True)
class Charts:
    """Pictures side by side where the page is wide enough, each with a table of its values."""

    kind: ClassVar[str] = "charts"
    charts: Sequence[Picture]
    title: str = ""
    note: str = ""

    def drawings(self) -> list[Markup | None]:
        """Return each picture as SVG with its text escaped; None if it is shown only as a table."""
        drawings = [chart.draw() for chart in self.charts]
        return [None if drawing is None else Markup(drawing) for drawing in drawings]  # noqa: S704 - built by ElementTree


OpenSection = Paragraph | Callout | Command | Table | Bars | Charts | Mistakes


@dataclass(frozen=True)
class Folded:
    """Sections that only their title shows until a reader opens it."""

    kind: ClassVar[str] = "folded"
    title: str
    sections: Sequence[OpenSection]
    note: str = ""


Section = OpenSection | Folded


@dataclass(frozen=True)
class Report:
    """A page: the finding, a summary of a sentence or two, and its sections from top to bottom."""

    title: str  # the finding, in words that need no other
    summary: str
    sections: Sequence[Section]
    name: str = ""  # of the model or the run, above the title


def render_report(report: Report) -> str:
    """Render the page as HTML.

    Invalid characters, such as an undecodable byte of a file name, become �.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cell"] = format_cell
    environment.filters["percent"] = format_percent
    environment.filters["shorten"] = shorten
    # numbers are right-aligned
    environment.tests["numeric"] = lambda cell: not isinstance(cell, str)
    source = resources.files("bertkit.reports").joinpath("report.html").read_text(encoding="utf-8")
    style = drawing_style({name: f"var(--{name})" for name in LIGHT})
    page = environment.from_string(source).render(
        report=report,
        light=LIGHT,
        dark=DARK,
        style=Markup(style),  # noqa: S704 - our own file
    )
    return make_legible(_BEFORE_PERCENT.sub("\N{NO-BREAK SPACE}", page))


def write_report(path: Path, report: Report) -> FileRecord:
    """Write the page atomically."""
    return write_file(path, render_report(report).encode())
