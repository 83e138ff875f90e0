"""Reliability diagrams: bins where they belong, and nothing where there is nothing."""

import math
from xml.etree import ElementTree as ET

import pytest
from tests.closeness import close

from bertkit.reports.figures.reliability import (
    LEFT,
    SIDE,
    STRIP_HEIGHT,
    STRIP_TOP,
    TOP,
    Bin,
    ReliabilityCurve,
    ReliabilityDiagram,
)
from bertkit.reports.text import format_cell

EMPTY = Bin(math.nan, math.nan, 0)
ZERO = Bin(0.0, 0.0, 0)
BEFORE = ReliabilityCurve("before", [ZERO, Bin(0.375, 0.25, 10), EMPTY, Bin(1.0, 0.5, 40)])
AFTER = ReliabilityCurve("after", [Bin(0.25, 0.25, 50), EMPTY, EMPTY, EMPTY])


def draw(*curves: ReliabilityCurve) -> ET.Element:
    return ET.fromstring(ReliabilityDiagram("Reliability", curves).draw())


def boxes(svg: ET.Element) -> list[list[float]]:
    return [
        [float(box.get(name)) for name in ("x", "y", "width", "height")] for box in svg.iter("rect")
    ]


def test_points_are_accuracy_over_confidence():
    svg = draw(BEFORE)
    places = [(float(each.get("cx")), float(each.get("cy"))) for each in svg.iter("circle")]
    assert places == [(LEFT + 0.375 * SIDE, TOP + 0.75 * SIDE), (LEFT + SIDE, TOP + SIDE / 2)]
    [line] = svg.iter("polyline")
    assert line.get("points").split() == [f"{x},{y}" for x, y in places]
    guide = next(group for group in svg.iter("g") if group.get("class") == "guide")
    diagonal = {name: float(place) for name, place in guide.find("line").attrib.items()}
    assert diagonal == {"x1": LEFT, "y1": TOP + SIDE, "x2": LEFT + SIDE, "y2": TOP}


def test_counts_are_bars_under_their_bins_side_by_side():
    [second, last, first] = boxes(draw(BEFORE, AFTER))
    width = (SIDE / 4 - 2) / 2
    bottom = STRIP_TOP + STRIP_HEIGHT
    assert second == close([LEFT + SIDE / 4 + 1, bottom - 11.2, width, 11.2], within=1e-3)
    assert last == close([LEFT + 0.75 * SIDE + 1, bottom - 44.8, width, 44.8], within=1e-3)
    assert first == close([LEFT + 1 + width, STRIP_TOP, width, STRIP_HEIGHT], within=1e-3)


def test_words_and_numbers_say_the_same():
    diagram = ReliabilityDiagram("Reliability", [BEFORE, AFTER])
    assert diagram.describe() == (
        "Accuracy over confidence. before: of 50 examples 40 in one bin, with a mean confidence of"
        " 100.0 % and an accuracy of 50.0 %; after: of 50 examples 50 in one bin, with a mean"
        " confidence of 25.0 % and an accuracy of 25.0 %"
    )
    _, rows = diagram.tabulate()
    assert [list(map(format_cell, row)) for row in rows] == [
        ["before", "25–50 %", "37.5 %", "25.0 %", "10"],
        ["before", "75–100 %", "100.0 %", "50.0 %", "40"],
        ["after", "0–25 %", "25.0 %", "25.0 %", "50"],
    ]
    assert [name for _, name in diagram.legend()] == ["before", "after", "perfect calibration"]


@pytest.mark.parametrize(
    "curves", [[], [ReliabilityCurve("a", [])], [ReliabilityCurve("a", [EMPTY, ZERO] * 5)]]
)
def test_no_data_is_said(curves):
    svg = draw(*curves)
    assert "no data yet" in [text.text for text in svg.iter("text")]
    assert boxes(svg) == []
    assert list(svg.iter("circle")) == []
    assert ReliabilityDiagram("t", curves).describe().endswith("No data yet")
    assert ReliabilityDiagram("t", curves).tabulate()[1] == []
