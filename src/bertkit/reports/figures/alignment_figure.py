"""Alignment of output tokens with input tokens by cross-attention, as a static grid."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import InputError
from bertkit.reports.cells import Cell
from bertkit.reports.figures.attention_figure import format_percent
from bertkit.reports.figures.picture import render_svg
from bertkit.reports.figures.picture_files import write_picture
from bertkit.reports.figures.svg import add_box, add_group, add_text, new_drawing, serialize, turn
from bertkit.reports.text import count_columns, shorten

MAX_TOKENS = 64
CELL_WIDTH, CELL_HEIGHT = 34, 24
LABEL_COLUMNS = 18
COLUMN_WIDTH = 7.2
MARGIN = 26  # for the labels of the axes
GAP = 8
MIN_WRITTEN = 0.1  # the smallest weight that is printed in its cell
STRENGTH = 0.75  # opacity is weight ** STRENGTH: small weights stay faint
NUM_NAMED = 3


@dataclass(frozen=True)
class AlignmentFigure:
    """Attention from one text to another: one row per query token.

    Attributes:
        title: the title of the figure.
        written: the output tokens, which name the rows.
        read: the input tokens, which name the columns.
        weights: [written, read], each from 0 to 1; each row sums to 1.

    Raises:
        InputError: the shape of `weights` doesn't match the tokens, or a text is too long.
    """

    title: str
    written: Sequence[str]
    read: Sequence[str]
    weights: Sequence[Sequence[float]]
    unit: str = "attention"

    def __post_init__(self) -> None:
        rows, columns = len(self.written), len(self.read)
        if len(self.weights) != rows or any(len(row) != columns for row in self.weights):
            raise InputError(
                f"an alignment of {rows:,} tokens with {columns:,} must have as many rows and"
                f" columns, and has {len(self.weights):,} rows of"
                f" {sorted({*map(len, self.weights)})} columns"
            )
        if max(rows, columns) > MAX_TOKENS:
            raise InputError(
                f"an alignment has room for {MAX_TOKENS} tokens a side, and this one has {rows} and"
                f" {columns}; shorten the text, or look at the page"
            )

    def draw(self) -> str:
        """Return the drawing as an SVG element."""
        left, top = MARGIN + _room(self.written), MARGIN + _room(self.read) * 0.75 + GAP
        width = left + CELL_WIDTH * len(self.read)
        height = top + CELL_HEIGHT * len(self.written)
        overhang = _room(self.read) * 0.7
        svg = new_drawing(width + overhang, height + 2, self.title, self.describe())
        add_text(svg, (left + width) / 2, 14, "what is read")
        turn(add_text(svg, 14, (top + height) / 2, "what is written"), -90)
        for row, token in enumerate(self.written):
            base = top + (row + 0.5) * CELL_HEIGHT + 4
            name = shorten(token, LABEL_COLUMNS)
            add_text(svg, left - GAP, base, name, anchor="end", style="token")
        for column, token in enumerate(self.read):
            x = left + (column + 0.5) * CELL_WIDTH + 2
            name = shorten(token, LABEL_COLUMNS)
            turn(add_text(svg, x, top - GAP, name, anchor="start", style="token"), -45)
        cells = add_group(svg, "matrix")
        for row in range(len(self.written)):
            for column in range(len(self.read)):
                x, y = left + column * CELL_WIDTH, top + row * CELL_HEIGHT
                self._add_cell(cells, x, y, row, column)
        return serialize(svg)

    def describe(self) -> str:
        """Return a description in words, for screen readers."""
        words = ["Rows are the tokens that are written, columns those that are read."]
        pairs = [(row, column) for row in range(len(self.written)) for column in self._columns]
        strongest = heapq.nlargest(NUM_NAMED, pairs, key=lambda pair: self._weight(*pair))
        return " ".join([*words, *(f"{self._say(*pair)}." for pair in strongest)])

    def legend(self) -> list[tuple[str, str]]:
        """Return no entries: the cells show their weights."""
        return []

    def tabulate(self) -> tuple[list[str], list[list[Cell]]]:
        """Return a table of the largest weights, one row per output token."""
        rows: list[list[Cell]] = []
        for row, token in enumerate(self.written):
            best = heapq.nlargest(NUM_NAMED, self._columns, key=self.weights[row].__getitem__)
            shares = (
                f"{shorten(self.read[column])} {format_percent(self._weight(row, column))}"
                for column in best
            )
            rows.append([row + 1, shorten(token), ", ".join(shares)])
        return ["Number", "Written", "Looks most at"], rows

    def write(self, path: str | Path) -> FileRecord:
        """Write the figure as SVG or PNG, chosen by the file extension."""
        return write_picture(Path(path), self)

    def _repr_svg_(self) -> str:
        """Return the SVG that notebooks display."""
        return render_svg(self)

    @property
    def _columns(self) -> range:
        return range(len(self.read))

    def _weight(self, row: int, column: int) -> float:
        return self.weights[row][column]

    def _say(self, row: int, column: int) -> str:
        written, read = shorten(self.written[row]), shorten(self.read[column])
        return f"{written} → {read}: {format_percent(self._weight(row, column))}"

    def _add_cell(self, parent: ET.Element, x: float, y: float, row: int, column: int) -> None:
        weight = self._weight(row, column)
        shade = add_box(parent, x, y, CELL_WIDTH, CELL_HEIGHT, style="right")
        shade.set("fill-opacity", f"{weight**STRENGTH:.3f}")
        box = add_box(parent, x, y, CELL_WIDTH, CELL_HEIGHT, style="frame")
        ET.SubElement(box, "title").text = self._say(row, column)
        if weight >= MIN_WRITTEN:
            base = y + CELL_HEIGHT / 2 + 4
            add_text(parent, x + CELL_WIDTH / 2, base, f"{100 * weight:.0f} %", style="count small")


def _room(tokens: Sequence[str]) -> float:
    """Return the width of the longest token name."""
    columns = (count_columns(shorten(token, LABEL_COLUMNS)) for token in tokens)
    return max(columns, default=0) * COLUMN_WIDTH + GAP
