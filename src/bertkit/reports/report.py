"""What a report is made of, and its writing.

A page holds everything it shows: styles and charts are inline, it has no script, and its content
security policy forbids it to fetch anything. All text is escaped; no text is ever markup.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import ClassVar

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from bertkit.base.checksums import FileRecord
from bertkit.base.files import write_file
from bertkit.reports.line_chart import LineChart, draw_line_chart

Cell = str | int | float


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
    """Rows under column names; numbers stand right and get their thousands separated."""

    kind: ClassVar[str] = "table"
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    note: str = ""


@dataclass(frozen=True)
class Bar:
    """One bar: its name, its length as a share of 1, and the words beside it."""

    name: str
    share: float
    label: str
    is_highlighted: bool = False


@dataclass(frozen=True)
class Bars:
    """Shares to be compared at a glance; the longest bar fills the width."""

    kind: ClassVar[str] = "bars"
    bars: Sequence[Bar]
    title: str = ""
    note: str = ""

    def width_percent(self, bar: Bar) -> float:
        """How much of the available width a bar takes."""
        longest = max((other.share for other in self.bars), default=0.0)
        return round(100 * bar.share / longest, 2) if longest > 0 else 0.0


@dataclass(frozen=True)
class Charts:
    """Line charts side by side, as far as the page is wide enough."""

    kind: ClassVar[str] = "charts"
    charts: Sequence[LineChart]
    title: str = ""
    note: str = ""

    def drawings(self) -> list[Markup]:
        """Each chart as SVG, in which all text has been escaped."""
        return [Markup(draw_line_chart(chart)) for chart in self.charts]  # noqa: S704 - built by ElementTree


Section = Paragraph | Command | Table | Bars | Charts


@dataclass(frozen=True)
class Report:
    """A page: its title, what it says in a sentence or two, and its sections from top to bottom."""

    title: str
    summary: str
    sections: Sequence[Section]


def render_report(report: Report) -> str:
    """The page as HTML."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cell"] = format_cell
    source = resources.files("bertkit.reports").joinpath("report.html").read_text(encoding="utf-8")
    return environment.from_string(source).render(report=report)


def write_report(path: Path, report: Report) -> FileRecord:
    """Write the page, whole or not at all.

    What isn't a character, such as an undecodable byte of a file's name, becomes a question mark.

    Raises:
        StorageError: the disk refused.
    """
    return write_file(path, render_report(report).encode(errors="replace"))


def format_cell(value: Cell) -> str:
    """A number as people read it; text as it is."""
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
