"""Which labels are taken for which: as a picture of few labels, as a list of pairs of many."""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from bertkit.base.errors import InputError
from bertkit.reports.cells import Cell
from bertkit.reports.svg import (
    add_box,
    add_group,
    add_text,
    new_drawing,
    serialise,
    turn,
)
from bertkit.reports.text import count_columns, shorten

MAX_LABELS = 30
MAX_ROOMY_LABELS = 8
MAX_PAIRS = 30
LABEL_COLUMNS = 18
COLUMN_WIDTH = 6.8
MARGIN = 30


@dataclass(frozen=True)
class Confusion:
    """One label taken for another.

    Attributes:
        true: what the examples are.
        predicted: what they were taken for.
        count: how many.
        share: of the examples that are `true`, between 0 and 1.
    """

    true: str
    predicted: str
    count: int
    share: float


@dataclass(frozen=True)
class ConfusionMatrix:
    """Counts of examples by true and predicted label.

    Attributes:
        title: what is shown.
        names: of the labels.
        counts: [labels, labels]; a row for each true label, in it a count for each predicted one.

    Raises:
        InputError: there isn't a row and a column for each name, or a count is negative.
    """

    title: str
    names: Sequence[str]
    counts: Sequence[Sequence[int]]
    unit: str = "examples"

    def __post_init__(self) -> None:
        num_labels = len(self.names)
        widths = {len(row) for row in self.counts}
        if len(self.counts) != num_labels or widths - {num_labels}:
            raise InputError(
                f"a confusion matrix of {num_labels:,} labels must have as many rows and columns,"
                f" and has {len(self.counts):,} rows with {sorted(widths)} columns"
            )
        lowest = min((min(row) for row in self.counts if num_labels), default=0)
        if lowest < 0:
            raise InputError(f"the counts of a confusion matrix must be 0 or more, not {lowest}")

    def draw(self) -> str | None:
        """The matrix as an SVG element, shaded by shares of its rows; None of over 30 labels."""
        if len(self.names) > MAX_LABELS:
            return None
        layout = _Layout.of(self.names)
        svg = new_drawing(*layout.size, self.title, self.describe())
        if not self.names:
            add_text(svg, layout.size[0] / 2, layout.size[1] / 2, "no data yet")
            return serialise(svg)
        _add_labels(svg, self.names, layout)
        cells = add_group(svg, "matrix")
        for row, counts in enumerate(self.counts):
            for column, count in enumerate(counts):
                self._add_cell(cells, layout, row, column, count)
        return serialise(svg)

    def describe(self) -> str:
        """The matrix in words, for those who don't see it."""
        num_right = sum(row[index] for index, row in enumerate(self.counts))
        total = sum(map(sum, self.counts))
        words = (
            "Rows are the true labels, columns the predicted ones."
            f" {num_right:,} of {total:,} {shorten(self.unit)} are on the diagonal."
        )
        for confusion in most_confused(self.counts, self.names, 3):
            words += f" {_say(confusion)}."
        return words

    def legend(self) -> list[tuple[str, str]]:
        """Nothing: the shades are explained by the counts in them."""
        return []

    def tabulate(self) -> tuple[list[str], list[list[Cell]]]:
        """Columns and rows of the same in numbers; of many labels the most confused pairs."""
        names = [shorten(name) for name in self.names]
        if len(names) <= MAX_LABELS:
            rows: list[list[Cell]] = [
                [name, *counts] for name, counts in zip(names, self.counts, strict=True)
            ]
            return ["true ↓ predicted →", *names], rows
        rows = [
            [each.true, each.predicted, each.count, f"{100 * each.share:.1f} %"]
            for each in most_confused(self.counts, names, MAX_PAIRS)
        ]
        return ["True", "Wrongly predicted", "Examples", "Share of the true label's"], rows

    def _add_cell(
        self, parent: ET.Element, layout: "_Layout", row: int, column: int, count: int
    ) -> None:
        total = sum(self.counts[row])
        share = count / total if total else 0.0
        x, y = layout.corner(row, column)
        is_right = row == column
        if count:
            style = "right" if is_right else "wrong"
            shade = add_box(parent, x, y, layout.width, layout.height, style=style)
            shade.set("fill-opacity", f"{math.sqrt(share):.3f}")  # a share of 5 % is to be seen
        frame = "diagonal" if is_right else "frame"
        box = add_box(parent, x, y, layout.width, layout.height, style=frame)
        words = _say(Confusion(self.names[row], self.names[column], count, share))
        ET.SubElement(box, "title").text = words
        middle, base = x + layout.width / 2, y + layout.height / 2 + 4
        if not layout.is_roomy:
            if count:
                add_text(parent, middle, base, _shorten_count(count), style="count small")
            return
        add_text(parent, middle, base - 6, f"{count:,}", style="count")
        if total:
            add_text(parent, middle, base + 8, f"{100 * share:.0f} %", style="count small")


@dataclass(frozen=True)
class _Layout:
    """Where the cells of a matrix stand.

    Attributes:
        num_labels: how many rows and columns there are.
        left: the room for the names of the rows.
        top: the room for the names of the columns.
        width: of a cell.
        height: of a cell.
        is_slanted: the names of the columns are wider than these.
    """

    num_labels: int
    left: float
    top: float
    width: float
    height: float
    is_slanted: bool

    @classmethod
    def of(cls, names: Sequence[str]) -> "_Layout":
        width, height = (72, 44) if len(names) <= MAX_ROOMY_LABELS else (32, 24)
        columns = (count_columns(shorten(name, LABEL_COLUMNS)) for name in names)
        longest = max(columns, default=0) * COLUMN_WIDTH
        is_slanted = longest > width - 4
        top = MARGIN + (longest * 0.7 + 14 if is_slanted else 14)
        return cls(len(names), MARGIN + longest + 8, top, width, height, is_slanted)

    @property
    def is_roomy(self) -> bool:
        return self.num_labels <= MAX_ROOMY_LABELS

    @property
    def size(self) -> tuple[float, float]:
        overhang = self.top - MARGIN if self.is_slanted else 4
        width = self.left + max(1, self.num_labels) * self.width + overhang
        return width, self.top + max(1, self.num_labels) * self.height + 4

    def corner(self, row: int, column: int) -> tuple[float, float]:
        return self.left + column * self.width, self.top + row * self.height


def most_confused(
    counts: Sequence[Sequence[int]], names: Sequence[str], limit: int
) -> list[Confusion]:
    """The pairs of labels that were confused most often, the most frequent first.

    Args:
        counts: [labels, labels]; a row for each true label.
        names: of the labels.
        limit: how many pairs to give at most.
    """
    worst = heapq.nsmallest(limit, _confused(counts))
    return [
        Confusion(names[true], names[predicted], -negative, -negative / sum(counts[true]))
        for negative, true, predicted in worst
    ]


def _confused(counts: Sequence[Sequence[int]]) -> Iterator[tuple[int, int, int]]:
    """Negative count, true and predicted label: in this order the least is the most frequent."""
    for true, row in enumerate(counts):
        if sum(row) > row[true]:
            for predicted, count in enumerate(row):
                if count and predicted != true:
                    yield -count, true, predicted


def _add_labels(svg: ET.Element, names: Sequence[str], layout: _Layout) -> None:
    middle = layout.left + len(names) * layout.width / 2
    add_text(svg, middle, 14, "predicted")
    across = layout.top + len(names) * layout.height / 2
    turn(add_text(svg, 14, across, "true"), -90)
    for index, name in enumerate(names):
        x, y = layout.corner(index, index)
        short = shorten(name, LABEL_COLUMNS)
        add_text(svg, layout.left - 8, y + layout.height / 2 + 4, short, anchor="end")
        if layout.is_slanted:
            x += layout.width / 2 + 4
            turn(add_text(svg, x, layout.top - 7, short, anchor="start"), -45)
        else:
            add_text(svg, x + layout.width / 2, layout.top - 8, short)


def _say(confusion: Confusion) -> str:
    true, predicted = (
        shorten(confusion.true),
        shorten(confusion.predicted),
    )
    return f"{true} predicted as {predicted}: {confusion.count:,} ({100 * confusion.share:.0f} %)"


def _shorten_count(count: int) -> str:
    """A count in at most four characters."""
    for unit, suffix in ((1_000_000, "M"), (1_000, "k")):
        if count >= 10 * unit:
            return f"{count // unit}{suffix}"
        if count >= unit:
            return f"{count * 10 // unit / 10}{suffix}"
    return str(count)
