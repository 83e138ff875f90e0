"""Scatter plots of named points, such as vectors projected on two principal components."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple
from xml.etree import ElementTree as ET

from bertkit.base.errors import InputError, pluralize
from bertkit.reports.figures.picture import WritablePicture
from bertkit.reports.figures.svg import (
    add_group,
    add_line,
    add_text,
    new_drawing,
    serialize,
    series_style,
    turn,
)
from bertkit.reports.text import Cell, count_columns, format_percent, shorten

WIDTH, HEIGHT, MARGIN = 560, 420, 40
RADIUS = 4
NAME_COLUMNS, COLUMN_WIDTH, LINE_HEIGHT = 32, 7.0, 14
SMALLEST = 1e-30  # smallest extent that is scaled; below it all points coincide
MAX_POINTS = 500

Place = tuple[float, float]


@dataclass(frozen=True)
class Scatter(WritablePicture):
    """Points with names; both axes have the same scale, so that distances are comparable."""

    title: str
    points: Sequence[Sequence[float]]  # (x, y) pairs; more than 500 can't be drawn
    names: Sequence[str]  # one that doesn't fit is only in the table
    shares: tuple[float, float]  # of the variance that each axis explains, from 0 to 1

    def __post_init__(self) -> None:
        if len(self.names) != len(self.points):
            raise InputError(
                f"expected as many names as points ({len(self.points):,}), got {len(self.names):,}"
            )
        for name, point in zip(self.names, self.points, strict=True):
            if len(point) != 2 or not all(map(math.isfinite, point)):
                raise InputError(f"the point of {name!r:.40} must be two finite numbers")

    @property
    def unit(self) -> str:
        """The share of the variance that both axes explain together."""
        return f"{format_percent(sum(self.shares))} of the variance"

    def draw(self) -> str | None:
        """Return the drawing as an SVG element; None if there are over 500 points."""
        if len(self.points) > MAX_POINTS:
            return None
        svg = new_drawing(WIDTH, HEIGHT, self.title, self.describe())
        grid = add_group(svg, "grid")
        left, top, right, bottom = MARGIN / 2, MARGIN / 2, WIDTH - MARGIN / 2, HEIGHT - MARGIN / 2
        for y in (top, bottom):
            add_line(grid, left, y, right, y)
        for x in (left, right):
            add_line(grid, x, top, x, bottom)
        across, upwards = (f"{format_percent(share)} of the variance" for share in self.shares)
        add_text(svg, WIDTH / 2, HEIGHT - 5, across)
        turn(add_text(svg, 14, HEIGHT / 2, upwards), -90)
        self._add_points(svg, _fit(self.points))
        return serialize(svg)

    def describe(self) -> str:
        """Return a description in words, for screen readers."""
        return f"{pluralize(len(self.points), 'point')} on a plane that shows {self.unit}."

    def tabulate(self) -> tuple[list[str], list[list[Cell]]]:
        """Return the names and the coordinates as a table."""
        rows: list[list[Cell]] = [
            [name, *map(float, point)] for name, point in zip(self.names, self.points, strict=True)
        ]
        return ["name", "to the right", "upwards"], rows

    def _add_points(self, svg: ET.Element, places: list[Place]) -> None:
        dots = add_group(svg, series_style(0))
        for (x, y), name in zip(places, self.names, strict=True):
            dot = ET.SubElement(dots, "circle", {"cx": f"{x:g}", "cy": f"{y:g}", "r": str(RADIUS)})
            ET.SubElement(dot, "title").text = shorten(name)
        names = [shorten(name, NAME_COLUMNS) for name in self.names]
        boxes = place_names(places, names)
        for (x, _), name, box in zip(places, names, boxes, strict=True):
            if box is not None:  # the end of the name near the point, or its middle
                side, anchor = (box.left, "start") if box.left > x else (x, "middle")
                if box.right < x:
                    side, anchor = box.right, "end"
                add_text(svg, side, box.bottom - 3, name, anchor=anchor, style="count")


class Box(NamedTuple):
    """A rectangle in the drawing, where y points down."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        """Whether the two rectangles overlap."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def place_names(places: Sequence[Place], names: Sequence[str]) -> list[Box | None]:
    """Find a box for each name beside, above or below its point; None where nothing is free.

    No name overlaps another name or a point; earlier points have priority.
    """
    dots = [Box(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in places]
    taken: list[Box] = []
    boxes: list[Box | None] = []
    for place, name in zip(places, names, strict=True):
        free = (
            box
            for box in _sides(place, count_columns(name) * COLUMN_WIDTH)
            if min(box.left, box.top) >= 0
            and box.right <= WIDTH
            and box.bottom <= HEIGHT
            and not any(box.overlaps(other) for other in chain(dots, taken))
        )
        box = next(free, None)
        boxes.append(box)
        if box is not None:
            taken.append(box)
    return boxes


def _sides(place: Place, width: float) -> Iterator[Box]:
    """Yield the candidate boxes of a name: right of its point, left, above, below."""
    x, y = place
    gap, half = RADIUS + 3, LINE_HEIGHT / 2
    yield Box(x + gap, y - half, x + gap + width, y + half)
    yield Box(x - gap - width, y - half, x - gap, y + half)
    yield Box(x - width / 2, y - gap - LINE_HEIGHT, x + width / 2, y - gap)
    yield Box(x - width / 2, y + gap, x + width / 2, y + gap + LINE_HEIGHT)


def _fit(points: Sequence[Sequence[float]]) -> list[Place]:
    """Scale and center points in the drawing."""
    if not points:
        return []
    lows, highs = (
        [limit(point[axis] for point in points) for axis in (0, 1)] for limit in (min, max)
    )
    rooms = (WIDTH - 4 * MARGIN, HEIGHT - 2 * MARGIN)  # leaves space for names at the sides
    scales = [
        room / (high - low)
        for low, high, room in zip(lows, highs, rooms, strict=True)
        if high - low > SMALLEST
    ]
    scale = min(scales, default=0.0)
    middle_x, middle_y = ((low + high) / 2 for low, high in zip(lows, highs, strict=True))
    return [
        (
            round(WIDTH / 2 + (x - middle_x) * scale, 2),
            round(HEIGHT / 2 - (y - middle_y) * scale, 2),
        )
        for x, y in points
    ]
