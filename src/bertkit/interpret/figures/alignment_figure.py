"""Alignment of target tokens with source tokens by cross-attention, as a static grid."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from bertkit.base.errors import InputError
from bertkit.interpret.figures.attention_figure import (
    Link,
    check_weights,
    describe_strongest,
    list_largest,
)
from bertkit.reports.figures.picture import WritablePicture
from bertkit.reports.figures.svg import add_box, add_group, add_text, new_drawing, serialize, turn
from bertkit.reports.text import Cell, count_columns, format_percent, shorten

MAX_TOKENS = 64
CELL_WIDTH, CELL_HEIGHT = 34, 24
LABEL_COLUMNS = 18
COLUMN_WIDTH = 7.2
MARGIN = 26  # for the labels of the axes
GAP = 8
MIN_PRINTED = 0.1  # the smallest weight that is printed in its cell
STRENGTH = 0.75  # opacity is weight ** STRENGTH: small weights stay faint


@dataclass(frozen=True)
class AlignmentFigure(WritablePicture):
    """Attention from one text to another: one row per query token."""

    title: str
    target: Sequence[str]  # tokens, which name the rows
    source: Sequence[str]  # tokens, which name the columns
    weights: Sequence[Sequence[float]]  # [target, source], each from 0 to 1; each row sums to 1
    unit: str = "attention"

    def __post_init__(self) -> None:
        rows, columns = len(self.target), len(self.source)
        check_weights(self.weights, rows, columns)
        if max(rows, columns) > MAX_TOKENS:
            raise InputError(
                f"an alignment has room for {MAX_TOKENS} tokens a side, and this one has {rows} and"
                f" {columns}; shorten the text, or use the page"
            )

    def draw(self) -> str:
        """Return the drawing as an SVG element."""
        left, top = MARGIN + _room(self.target), MARGIN + _room(self.source) * 0.75 + GAP
        width = left + CELL_WIDTH * len(self.source)
        height = top + CELL_HEIGHT * len(self.target)
        overhang = _room(self.source) * 0.7
        svg = new_drawing(width + overhang, height + 2, self.title, self.describe())
        add_text(svg, (left + width) / 2, 14, "source")
        turn(add_text(svg, 14, (top + height) / 2, "target"), -90)
        for row, token in enumerate(self.target):
            base = top + (row + 0.5) * CELL_HEIGHT + 4
            name = shorten(token, LABEL_COLUMNS)
            add_text(svg, left - GAP, base, name, anchor="end", style="token")
        for column, token in enumerate(self.source):
            x = left + (column + 0.5) * CELL_WIDTH + 2
            name = shorten(token, LABEL_COLUMNS)
            turn(add_text(svg, x, top - GAP, name, anchor="start", style="token"), -45)
        cells = add_group(svg, "matrix")
        for link in self._links():
            x, y = left + link.target * CELL_WIDTH, top + link.source * CELL_HEIGHT
            self._add_cell(cells, x, y, link)
        return serialize(svg)

    def describe(self) -> str:
        """Return a description in words, for screen readers."""
        words = "Rows are the target tokens, columns the source tokens."
        return describe_strongest(words, self._links(), self.target, self.source)

    def tabulate(self) -> tuple[list[str], list[list[Cell]]]:
        """Return a table of the largest weights, one row per target token."""
        rows = list_largest(self.target, self.weights, self.source)
        return ["Number", "Target", "Attends most to"], rows

    def _links(self) -> Iterator[Link]:
        for row, weights in enumerate(self.weights):
            for column, weight in enumerate(weights):
                yield Link(row, column, weight)

    def _add_cell(self, parent: ET.Element, x: float, y: float, link: Link) -> None:
        weight = link.weight
        shade = add_box(parent, x, y, CELL_WIDTH, CELL_HEIGHT, style="right")
        shade.set("fill-opacity", f"{weight**STRENGTH:.3f}")
        box = add_box(parent, x, y, CELL_WIDTH, CELL_HEIGHT, style="frame")
        ET.SubElement(box, "title").text = link.describe(self.target, self.source)
        if weight >= MIN_PRINTED:
            base = y + CELL_HEIGHT / 2 + 4
            add_text(
                parent, x + CELL_WIDTH / 2, base, format_percent(weight, 0), style="count small"
            )


def _room(tokens: Sequence[str]) -> float:
    """Return the width of the longest token name."""
    columns = (count_columns(shorten(token, LABEL_COLUMNS)) for token in tokens)
    return max(columns, default=0) * COLUMN_WIDTH + GAP
