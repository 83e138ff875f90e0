"""Confusion matrices: a drawing for few labels, a list of the most confused pairs for many."""

import heapq
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from xml.etree import ElementTree as ET

from bertkit.base.errors import InputError
from bertkit.reports.figures.picture import WritablePicture
from bertkit.reports.figures.svg import add_box, add_group, add_text, new_drawing, serialize, turn
from bertkit.reports.text import Cell, count_columns, format_percent, show

MAX_LABELS = 30
MAX_ROOMY_LABELS = 8
MAX_PAIRS = 30
LABEL_COLUMNS = 18
COLUMN_WIDTH = 6.8
MARGIN = 30


@dataclass(frozen=True)
class Confusion:
    """A true label that was predicted as another."""

    true: str  # the true label
    predicted: str
    count: int
    share: float  # of all examples whose label is `true`


@dataclass(frozen=True)
class ConfusionMatrix(WritablePicture):
    """Counts of examples by true and predicted label."""

    title: str
    names: Sequence[str]
    # by ids of the true and the predicted label; absent pairs are 0
    counts: Mapping[tuple[int, int], int]
    unit: str = "examples"

    def __post_init__(self) -> None:
        num_labels = len(self.names)
        nameless = [pair for pair in self.counts if not 0 <= min(pair) <= max(pair) < num_labels]
        if nameless:
            raise InputError(
                f"a confusion matrix of {num_labels:,} labels can't count label {nameless[0][0]:,}"
                f" taken for label {nameless[0][1]:,}; labels are counted from 0"
            )
        lowest = min(self.counts.values(), default=0)
        if lowest < 0:
            raise InputError(f"the counts of a confusion matrix must be 0 or more, not {lowest}")

    def draw(self) -> str | None:
        """Return an SVG element shaded by shares of each row; None if there are over 30 labels."""
        if len(self.names) > MAX_LABELS:
            return None
        layout = _MatrixLayout.of(self.names)
        svg = new_drawing(*layout.size, self.title, self.describe())
        if not self.names:
            add_text(svg, layout.size[0] / 2, layout.size[1] / 2, "no data yet")
            return serialize(svg)
        _add_labels(svg, self.names, layout)
        cells = add_group(svg, "matrix")
        totals = count_true(self.counts)
        for row, column in product(range(len(self.names)), repeat=2):
            self._add_cell(cells, layout, (row, column), totals[row])
        return serialize(svg)

    def describe(self) -> str:
        """Return a description in words, for screen readers."""
        num_right = sum(count for (true, guess), count in self.counts.items() if true == guess)
        total = sum(self.counts.values())
        words = (
            "Rows are the true labels, columns the predicted ones."
            f" {num_right:,} of {total:,} {show(self.unit)} are on the diagonal."
        )
        for confusion in most_confused(self.counts, self.names, 3):
            words += f" {_say(confusion)}."
        return words

    def tabulate(self) -> tuple[list[str], list[list[Cell]]]:
        """Return a table of the counts, or of the most confused pairs if there are many labels."""
        if len(self.names) <= MAX_LABELS:
            names = [show(name) for name in self.names]
            counts = list_rows(self.counts, len(names))
            table: list[list[Cell]] = [
                [name, *row] for name, row in zip(names, counts, strict=True)
            ]
            return ["true ↓ predicted →", *names], table
        rows: list[list[Cell]] = [
            [show(pair.true), show(pair.predicted), pair.count, format_percent(pair.share)]
            for pair in most_confused(self.counts, self.names, MAX_PAIRS)
        ]
        return ["True", "Wrongly predicted", "Examples", "Share of the true label's"], rows

    def _add_cell(
        self, parent: ET.Element, layout: "_MatrixLayout", cell: tuple[int, int], total: int
    ) -> None:
        row, column = cell
        count = self.counts.get(cell, 0)
        share = count / total if total else 0.0
        x, y = layout.corner(row, column)
        is_right = row == column
        if count:
            style = "right" if is_right else "wrong"
            shade = add_box(parent, x, y, layout.width, layout.height, style=style)
            shade.set(
                "fill-opacity", f"{math.sqrt(share):.3f}"
            )  # the root keeps a share of 5 % visible
        frame = "diagonal" if is_right else "frame"
        box = add_box(parent, x, y, layout.width, layout.height, style=frame)
        words = _say(Confusion(self.names[row], self.names[column], count, share))
        ET.SubElement(box, "title").text = words
        middle, base = x + layout.width / 2, y + layout.height / 2 + 4
        if len(self.names) > MAX_ROOMY_LABELS:
            if count:
                add_text(parent, middle, base, _shorten_count(count), style="count small")
            return
        add_text(parent, middle, base - 6, f"{count:,}", style="count")
        if total:
            add_text(parent, middle, base + 8, format_percent(share, 0), style="count small")


@dataclass(frozen=True)
class _MatrixLayout:
    """The positions of the cells of a matrix."""

    num_labels: int
    left: float  # the space for the row names
    top: float  # the space for the column names
    width: float  # of a cell
    height: float  # of a cell
    is_slanted: bool  # whether column names are wider than the columns

    @classmethod
    def of(cls, names: Sequence[str]) -> "_MatrixLayout":
        width, height = (72, 44) if len(names) <= MAX_ROOMY_LABELS else (32, 24)
        columns = (count_columns(show(name, LABEL_COLUMNS)) for name in names)
        longest = max(columns, default=0) * COLUMN_WIDTH
        is_slanted = longest > width - 4
        top = MARGIN + (longest * 0.7 + 14 if is_slanted else 14)
        return cls(len(names), MARGIN + longest + 8, top, width, height, is_slanted)

    @property
    def size(self) -> tuple[float, float]:
        overhang = self.top - MARGIN if self.is_slanted else 4
        width = self.left + max(1, self.num_labels) * self.width + overhang
        return width, self.top + max(1, self.num_labels) * self.height + 4

    def corner(self, row: int, column: int) -> tuple[float, float]:
        return self.left + column * self.width, self.top + row * self.height


def most_confused(
    counts: Mapping[tuple[int, int], int], names: Sequence[str], limit: int
) -> list[Confusion]:
    """Return the pairs of labels that were confused most often, the most frequent first.

    `counts` are by the ids of the true and the predicted label.
    """
    wrong = (
        (-count, true, predicted)
        for (true, predicted), count in counts.items()
        if count and predicted != true
    )
    worst, totals = heapq.nsmallest(limit, wrong), count_true(counts)
    return [
        Confusion(names[true], names[predicted], -negative, -negative / totals[true])
        for negative, true, predicted in worst
    ]


def count_true(counts: Mapping[tuple[int, int], int]) -> Counter[int]:
    """Count the examples of each true label."""
    totals: Counter[int] = Counter()
    for (true, _), count in counts.items():
        totals[true] += count
    return totals


def list_rows(counts: Mapping[tuple[int, int], int], num_labels: int) -> list[list[int]]:
    """Return the dense matrix of counts, one row per true label; only for few labels."""
    rows = [[0] * num_labels for _ in range(num_labels)]
    for (true, predicted), count in counts.items():
        rows[true][predicted] = count
    return rows


def _add_labels(svg: ET.Element, names: Sequence[str], layout: _MatrixLayout) -> None:
    middle = layout.left + len(names) * layout.width / 2
    add_text(svg, middle, 14, "predicted")
    across = layout.top + len(names) * layout.height / 2
    turn(add_text(svg, 14, across, "true"), -90)
    for index, name in enumerate(names):
        x, y = layout.corner(index, index)
        short = show(name, LABEL_COLUMNS)
        add_text(svg, layout.left - 8, y + layout.height / 2 + 4, short, anchor="end")
        if layout.is_slanted:
            x += layout.width / 2 + 4
            turn(add_text(svg, x, layout.top - 7, short, anchor="start"), -45)
        else:
            add_text(svg, x + layout.width / 2, layout.top - 8, short)


def _say(confusion: Confusion) -> str:
    true, predicted = show(confusion.true), show(confusion.predicted)
    return (
        f"{true} predicted as {predicted}: {confusion.count:,} ({format_percent(confusion.share)})"
    )


def _shorten_count(count: int) -> str:
    """Format a count in at most four characters."""
    for unit, suffix in ((1_000_000, "M"), (1_000, "k")):
        if count >= 10 * unit:
            return f"{count // unit}{suffix}"
        if count >= unit:
            return f"{count * 10 // unit / 10}{suffix}"
    return str(count)
