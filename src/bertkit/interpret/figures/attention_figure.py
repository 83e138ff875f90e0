"""Attention of one head as a static drawing: two columns of tokens, and lines between them."""

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from bertkit.base.errors import InputError
from bertkit.reports.figures.picture import WritablePicture
from bertkit.reports.figures.svg import (
    add_box,
    add_group,
    add_line,
    add_text,
    new_drawing,
    serialize,
    series_style,
)
from bertkit.reports.text import Cell, count_columns, format_percent, shorten

MAX_TOKENS = 128
MIN_WEIGHT = 0.01  # the smallest weight that is drawn as a line
TOP, ROW_HEIGHT = 30, 20
SPAN = 220  # from column to column
GAP = 6  # between a token and its lines
PERCENT_WIDTH = 40
LABEL_COLUMNS = 18
COLUMN_WIDTH = 8.0
MIN_LABEL_WIDTH = 90  # leaves space for the legend
NUM_NAMED = 3


@dataclass(frozen=True)
class Link:
    """The attention weight from one token to another."""

    source: int  # the index of the query token
    target: int  # the index of the key token
    weight: float  # from 0 to 1; those of a source sum to 1

    def describe(self, tokens: Sequence[str], keys: Sequence[str]) -> str:
        """Describe it, such as “it → cat: 45 %”."""
        query, key = shorten(tokens[self.source]), shorten(keys[self.target])
        return f"{query} → {key}: {format_percent(self.weight)}"


@dataclass(frozen=True)
class AttentionFigure(WritablePicture):
    """The attention of one head on one text, from all tokens or from one."""

    title: str
    tokens: Sequence[str]  # the query tokens; more than 128 can't be drawn
    weights: Sequence[Sequence[float]]  # [tokens, attended tokens]
    focus: int | None = None  # a token to show alone, with percentages; None shows all
    unit: str = "attention"
    attended_tokens: Sequence[str] | None = None  # the key tokens; `tokens` if None is given

    def __post_init__(self) -> None:
        length = len(self.tokens)
        check_weights(self.weights, length, len(self._keys))
        if self.focus is not None and not 0 <= self.focus < length:
            raise InputError(f"there is no token {self.focus}: they are 0 to {length - 1}")

    def draw(self) -> str | None:
        """Return the drawing as an SVG element; None if there are over 128 tokens."""
        if max(len(self.tokens), len(self._keys)) > MAX_TOKENS:
            return None
        layout = _AttentionLayout.of(self.tokens, self._keys, has_numbers=self.focus is not None)
        svg = new_drawing(layout.width, layout.height, self.title, self.describe())
        add_text(svg, layout.left, TOP - 14, "query", anchor="end")
        add_text(svg, layout.right, TOP - 14, "key", anchor="start")
        links = sorted(self._links(), key=lambda link: link.weight)  # the strongest on top
        lines = add_group(svg, series_style(0))
        for link in links:
            start, stop = layout.middle(link.source), layout.middle(link.target)
            line = add_line(lines, layout.left + GAP, start, layout.right - GAP, stop)
            line.set(
                "stroke-opacity", f"{math.sqrt(link.weight):.3f}"
            )  # the root keeps 5 % visible
            ET.SubElement(line, "title").text = link.describe(self.tokens, self._keys)
        if self.focus is not None:
            _add_numbers(svg, layout, links)
        for index, token in enumerate(self.tokens):
            base, name = layout.middle(index) + 4, shorten(token, LABEL_COLUMNS)
            style = "token" if self.focus is None else "heading" if index == self.focus else ""
            add_text(svg, layout.left, base, name, anchor="end", style=style)
        for index, token in enumerate(self._keys):
            base, name = layout.middle(index) + 4, shorten(token, LABEL_COLUMNS)
            add_text(svg, layout.right, base, name, anchor="start", style="token")
        return serialize(svg)

    def describe(self) -> str:
        """Return a description in words, for screen readers."""
        words = "Lines lead from each token on the left to those that it attends to, on the right."
        if self.focus is not None:
            words = f"The tokens that “{shorten(self.tokens[self.focus])}” attends to."
        return describe_strongest(words, self._links(), self.tokens, self._keys)

    def legend(self) -> list[tuple[str, str]]:
        """Return one entry, which explains the opacity of the lines."""
        least = format_percent(MIN_WEIGHT, 0)
        return [(series_style(0), f"more attention, stronger line; none under {least}")]

    def tabulate(self) -> tuple[list[str], list[list[Cell]]]:
        """Return a table of the largest weights, one row per query token."""
        rows = list_largest(self.tokens, self.weights, self._keys)
        chosen = rows if self.focus is None else [rows[self.focus]]
        return ["Number", "Token", "Attends most to"], chosen

    @property
    def _keys(self) -> Sequence[str]:
        """The key tokens."""
        return self.tokens if self.attended_tokens is None else self.attended_tokens

    def _links(self) -> Iterator[Link]:
        """Yield the links whose weight is at least `MIN_WEIGHT`."""
        for source, row in enumerate(self.weights):
            if self.focus in (None, source):
                for target, weight in enumerate(row):
                    if weight >= MIN_WEIGHT:
                        yield Link(source, target, weight)


@dataclass(frozen=True)
class _AttentionLayout:
    """The positions of the two columns of tokens."""

    num_rows: int  # tokens in the longer column
    label_width: float  # of a token
    number_width: float  # of a percentage on the right

    @classmethod
    def of(
        cls, tokens: Sequence[str], keys: Sequence[str], *, has_numbers: bool
    ) -> "_AttentionLayout":
        names = [shorten(token, LABEL_COLUMNS) for token in (*tokens, *keys)]
        columns = map(count_columns, names)
        label_width = max(MIN_LABEL_WIDTH, max(columns, default=0) * COLUMN_WIDTH)
        num_rows = max(len(tokens), len(keys))
        return cls(num_rows, label_width, PERCENT_WIDTH if has_numbers else 0)

    @property
    def left(self) -> float:
        """The x-coordinate at which the left column ends."""
        return self.label_width

    @property
    def right(self) -> float:
        """The x-coordinate at which the right column begins."""
        return self.label_width + SPAN

    @property
    def width(self) -> float:
        return self.right + self.label_width + self.number_width

    @property
    def height(self) -> float:
        return TOP + self.num_rows * ROW_HEIGHT

    def middle(self, token: int) -> float:
        """Return the y-coordinate of a token's middle, where its lines end."""
        return TOP + (token + 0.5) * ROW_HEIGHT


def _add_numbers(svg: ET.Element, layout: _AttentionLayout, links: Iterable[Link]) -> None:
    """Shade the targets of the token in focus, and add percentages."""
    shades = add_group(svg, series_style(0))
    for link in links:
        y = layout.middle(link.target)
        left = layout.right - GAP
        width = layout.width - left
        box = add_box(shades, left, y - ROW_HEIGHT / 2, width, ROW_HEIGHT - 1)
        box.set("opacity", f"{link.weight:.3f}")
        words = format_percent(link.weight)
        add_text(svg, layout.width - GAP, y + 4, words, anchor="end", style="token")


def check_weights(weights: Sequence[Sequence[float]], num_rows: int, num_columns: int) -> None:
    """Raise an `InputError` if the weights don't have a row per query and a column per key."""
    if len(weights) != num_rows or any(len(row) != num_columns for row in weights):
        raise InputError(
            f"the attention of {num_rows:,} tokens to {num_columns:,} must have as many rows and"
            f" columns, and has {len(weights):,} rows of {sorted({*map(len, weights)})} columns"
        )


def list_largest(
    tokens: Sequence[str], weights: Sequence[Sequence[float]], keys: Sequence[str]
) -> list[list[Cell]]:
    """Return a row for each token: its number, itself, and the keys with the largest weights."""
    rows: list[list[Cell]] = []
    for number, (token, shares) in enumerate(zip(tokens, weights, strict=True), start=1):
        best = heapq.nlargest(NUM_NAMED, range(len(shares)), key=shares.__getitem__)
        named = (f"{shorten(keys[index])} {format_percent(shares[index])}" for index in best)
        rows.append([number, shorten(token), ", ".join(named)])
    return rows


def describe_strongest(
    words: str, links: Iterable[Link], tokens: Sequence[str], keys: Sequence[str]
) -> str:
    """Return a description that ends with the strongest links."""
    strongest = heapq.nlargest(NUM_NAMED, links, key=lambda link: link.weight)
    return " ".join([words, *(f"{link.describe(tokens, keys)}." for link in strongest)])
