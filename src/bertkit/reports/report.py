"""What a report is made of, and its writing.

A page holds everything it shows: styles and charts are inline, it has no script, and its content
security policy forbids it to fetch anything. All text is escaped; no text is ever markup.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import ClassVar

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from bertkit.base.checksums import FileRecord
from bertkit.base.files import write_file
from bertkit.reports.cells import Cell, format_cell, is_numeric
from bertkit.reports.figures.picture import Picture
from bertkit.reports.figures.svg import DARK, LIGHT, drawing_style
from bertkit.reports.mistakes import Mistakes
from bertkit.reports.text import make_legible, shorten


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    kind: ClassVar[str] = "paragraph"
    text: str
    title: str = ""
    note: str = ""


@dataclass(frozen=True)
class Command:
    """Words for a terminal, one command a line."""

    kind: ClassVar[str] = "command"
    text: str
    title: str = ""
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under column names; numbers and intervals stand right, their thousands separated."""

    kind: ClassVar[str] = "table"
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    note: str = ""


@dataclass(frozen=True)
class Bar:
    """One bar: its name, its length as a share of 1, and the words beside it.

    Attributes:
        name: what is measured.
        share: its length; what is negative or not defined has none.
        label: the value in words.
        is_highlighted: it is the one to look at.
        extent: from where to where the true value may lie, drawn as a whisker.
    """

    name: str
    share: float
    label: str
    is_highlighted: bool = False
    extent: tuple[float, float] | None = None


@dataclass(frozen=True)
class Bars:
    """Shares to be compared at a glance; the longest bar fills the width."""

    kind: ClassVar[str] = "bars"
    bars: Sequence[Bar]
    title: str = ""
    note: str = ""

    def width_percent(self, bar: Bar) -> float:
        """How much of the available width a bar takes."""
        return self._percent(bar.share)

    def whisker_percent(self, extent: tuple[float, float]) -> tuple[float, float]:
        """Where a whisker begins and how long it is, in the same measure as the bars."""
        low, high = map(self._percent, extent)
        return low, round(high - low, 2)

    def _percent(self, share: float) -> float:
        lengths = [end for bar in self.bars for end in (bar.share, *(bar.extent or ()))]
        longest = max(filter(math.isfinite, lengths), default=0.0)
        if not math.isfinite(share) or longest <= 0:
            return 0.0
        return round(100 * max(0.0, share) / longest, 2)


@dataclass(frozen=True)
class Charts:
    """Pictures side by side, as far as the page is wide enough, each with a table of the same."""

    kind: ClassVar[str] = "charts"
    charts: Sequence[Picture]
    title: str = ""
    note: str = ""

    def drawings(self) -> list[Markup | None]:
        """Each picture as SVG, in which all text has been escaped; None for a mere table."""
        drawings = [chart.draw() for chart in self.charts]
        return [None if drawing is None else Markup(drawing) for drawing in drawings]  # noqa: S704 - built by ElementTree


Section = Paragraph | Command | Table | Bars | Charts | Mistakes


@dataclass(frozen=True)
class Report:
    """A page: its title, what it says in a sentence or two, and its sections from top to bottom."""

    title: str
    summary: str
    sections: Sequence[Section]


def render_report(report: Report) -> str:
    """The page as HTML.

    What isn't a character, such as an undecodable byte of a file's name, becomes �.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cell"] = format_cell
    environment.filters["shorten"] = shorten
    environment.tests["numeric"] = is_numeric
    source = resources.files("bertkit.reports").joinpath("report.html").read_text(encoding="utf-8")
    style = drawing_style({name: f"var(--{name})" for name in LIGHT})
    page = environment.from_string(source).render(
        report=report,
        light=LIGHT,
        dark=DARK,
        style=Markup(style),  # noqa: S704 - a file of ours
    )
    return make_legible(page)


def write_report(path: Path, report: Report) -> FileRecord:
    """Write the page, whole or not at all."""
    return write_file(path, render_report(report).encode())
