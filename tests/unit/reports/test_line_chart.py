"""Line charts: where points fall, how ticks are chosen, and what words they carry."""

import math
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from bertkit.reports.line_chart import (
    BOTTOM,
    HEIGHT,
    LEFT,
    MAX_MARKED_POINTS,
    MAX_POINTS,
    RIGHT,
    TOP,
    WIDTH,
    LineChart,
    Series,
    draw_line_chart,
    format_tick,
    round_ticks,
)


def draw(*series: Series, **options) -> ET.Element:
    chart = LineChart("Loss", "step", "loss", series, **options)
    return ET.fromstring(draw_line_chart(chart))


def polylines(svg: ET.Element) -> list[list[tuple[float, ...]]]:
    return [
        [tuple(map(float, place.split(","))) for place in line.get("points").split()]
        for line in svg.iter("polyline")
    ]


def words(svg: ET.Element) -> list[str]:
    return [text.text for text in svg.iter("text")]


def test_corners_of_the_data_are_corners_of_the_drawing():
    [line] = polylines(draw(Series("a", [(0, 0), (5, 2.5), (10, 5)])))
    assert line == [
        (LEFT, HEIGHT - BOTTOM),
        ((LEFT + WIDTH - RIGHT) / 2, (HEIGHT - BOTTOM + TOP) / 2),
        (WIDTH - RIGHT, TOP),
    ]


def test_a_value_that_is_not_finite_leaves_a_gap():
    points = [(0, 1.0), (1, 2.0), (2, math.nan), (3, math.inf), (4, 2.0), (5, 1.0)]
    assert [len(line) for line in polylines(draw(Series("a", points)))] == [2, 2]


@pytest.mark.parametrize("points", [[], [(0, math.nan)]])
def test_no_data_is_said(points):
    assert words(draw(Series("a", points))) == ["no data yet"]


def test_one_point_and_constant_values_are_drawn():
    for points in ([(3, 7.0)], [(1, 0.0), (2, 0.0)], [(1, -4.0), (2, -4.0)]):
        svg = draw(Series("a", points))
        assert all(math.isfinite(place) for line in polylines(svg) for xy in line for place in xy)
        assert len(list(svg.iter("circle"))) == len(points)


def test_each_series_has_its_own_style_and_its_name_in_the_description():
    svg = draw(Series("train", [(0, 3), (9, 1)]), Series("held out", [(0, 4), (9, 2)]))
    assert [group.get("class") for group in svg.iter("g")][1:] == [
        "series series-0",
        "series series-1",
    ]
    assert svg.find("title").text == "Loss"
    description = svg.find("desc").text
    assert "train: from 3 at 0 to 1 at 9" in description
    assert "held out: from 4 at 0 to 2 at 9" in description


def test_long_series_are_thinned_and_keep_their_last_point():
    points = [(x, float(x)) for x in range(10 * MAX_POINTS + 7)]
    svg = draw(Series("a", points))
    [line] = polylines(svg)
    assert MAX_POINTS / 2 < len(line) <= MAX_POINTS
    last_only = [float(circle.get("cx")) for circle in svg.iter("circle")]
    assert last_only == [line[-1][0]]
    assert len(points) > MAX_MARKED_POINTS


def test_percentages_are_shown_as_such():
    svg = draw(Series("a", [(0, 0.0), (1, 1.0)]), is_percent=True)
    assert {"0 %", "20 %", "100 %"} <= set(words(svg))
    assert "from 0 % at 0 to 100 % at 1" in svg.find("desc").text


def test_the_axis_begins_at_zero_where_asked():
    assert "0" in words(draw(Series("a", [(5, 100.0), (6, 101.0)]), starts_at_zero=True))
    assert "0" not in words(draw(Series("a", [(5, 100.0), (6, 101.0)])))


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0.013, 0.0171), (-3, 7), (1e-9, 2e-9), (5, 5), (0, 0), (999, 123456)]
)
def test_ticks_enclose_the_data_and_are_few_and_even(low, high):
    ticks = round_ticks(low, high, 5)
    assert ticks[0] <= low + 1e-12
    assert ticks[-1] >= high - 1e-12
    assert 3 <= len(ticks) <= 8
    steps = [later - earlier for earlier, later in pairwise(ticks)]
    assert max(steps) == pytest.approx(min(steps))
    mantissa = steps[0] / 10 ** math.floor(math.log10(steps[0]) + 1e-9)
    assert any(mantissa == pytest.approx(round_step) for round_step in (1, 2, 2.5, 5))


def test_ticks_are_short():
    shown = [format_tick(value) for value in (0, 0.25, 1500, 20_000, 3e6, 2.5e9, -40_000)]
    assert shown == ["0", "0.25", "1500", "20k", "3M", "2.5G", "-40k"]


def test_names_are_text_and_never_markup():
    name = "</script><img src=x onerror=alert(1)>&\"'"
    drawing = draw_line_chart(LineChart(name, name, name, [Series(name, [(0, 1), (1, 2)])]))
    assert "<img" not in drawing
    assert "</script" not in drawing
    assert ET.fromstring(drawing).find("title").text == name
