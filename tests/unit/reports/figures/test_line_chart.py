"""Line charts: where points fall, how ticks are chosen, and what words they carry."""

import math
from xml.etree import ElementTree as ET

import pytest

from bertkit.reports.figures.line_chart import (
    BOTTOM,
    HEIGHT,
    LEFT,
    MAX_MARKED_POINTS,
    MAX_POINTS,
    MAX_ROWS,
    RIGHT,
    TOP,
    WIDTH,
    LineChart,
    Series,
)
from bertkit.reports.text import MetricCell


def draw(*series: Series, **options) -> ET.Element:
    chart = LineChart("Loss", "step", "loss", series, **options)
    return ET.fromstring(chart.draw())


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
    points = [(0, 1.0), (1, 2.0), (2, math.nan), (3, math.inf), (3.5, 1.7e308), (4, 2.0), (5, 1.0)]
    assert [len(line) for line in polylines(draw(Series("a", points)))] == [2, 2]


@pytest.mark.parametrize("points", [[], [(0, math.nan)]])
def test_no_data_is_said(points):
    assert words(draw(Series("a", points))) == ["no data yet"]


@pytest.mark.parametrize(
    "values",
    [
        (0.9, math.nextafter(0.9, 1)),  # a metric that is the same but for its last bit
        (123456789.123, math.nextafter(123456789.123, 0)),
        (0.0, 5e-324),
        (1e150, -1e150),
        (1e-150, 1e150),
        (1e-310, 1e-150),
    ],
)
@pytest.mark.parametrize("is_logarithmic", [False, True])
def test_values_of_any_size_and_nearness_are_drawn(values, is_logarithmic):
    for points in ([(1, values[0]), (2, values[1])], [(values[0], 1), (values[1], 2)]):
        svg = draw(Series("a", points), is_logarithmic=is_logarithmic)
        places = [place for line in polylines(svg) for xy in line for place in xy]
        assert all(0 <= place <= WIDTH for place in places)
        assert places or words(svg) == ["no data yet"]


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
    chart = LineChart("t", "x", "y", [Series("a", [(x, x) for x in range(100_003)])])
    _, rows = chart.tabulate()
    assert MAX_ROWS / 2 < len(rows) <= MAX_ROWS
    assert rows[-1] == [100_002, MetricCell(100_002)]


def test_percentages_are_shown_as_such():
    svg = draw(Series("a", [(0, 0.0), (1, 1.0)]), is_percent=True)
    assert {"0 %", "20 %", "100 %"} <= set(words(svg))
    assert "from 0.0 % at 0 to 100.0 % at 1" in svg.find("desc").text


def test_a_band_is_a_polygon_around_its_line_and_widens_the_axis():
    points = [(0, 0.5), (10, 0.5)]
    svg = draw(Series("a", points, band=[(0, 0.0, 1.0), (10, 0.25, 0.75)]))
    [polygon] = svg.iter("polygon")
    middle = (HEIGHT - BOTTOM + TOP) / 2
    quarter = (HEIGHT - BOTTOM - TOP) / 4
    assert [tuple(map(float, place.split(","))) for place in polygon.get("points").split()] == [
        (LEFT, TOP),
        (WIDTH - RIGHT, middle - quarter),
        (WIDTH - RIGHT, middle + quarter),
        (LEFT, HEIGHT - BOTTOM),
    ]
    assert polygons_of([(0, 0.0, 1.0), (5, math.nan, 1.0), (10, 0.2, 0.4)]) == 2
    assert polygons_of([]) == 0


def polygons_of(band) -> int:
    return len(list(draw(Series("a", [(0, 0.5), (10, 0.5)], band=band)).iter("polygon")))


def test_equal_ratios_take_equal_room_where_the_axis_is_logarithmic():
    points = [(0, 9.0), (-5, 9.0), (1, 1.0), (10, 2.0), (100, 3.0)]
    svg = draw(Series("a", points), is_logarithmic=True)
    [line] = polylines(svg)
    assert [x for x, _ in line] == [LEFT, (LEFT + WIDTH - RIGHT) / 2, WIDTH - RIGHT]
    assert "from 1 at 1 to 3 at 100" in svg.find("desc").text
    assert words(draw(Series("a", [(0, 1.0)]), is_logarithmic=True)) == ["no data yet"]


def test_the_table_has_a_row_for_each_place_and_the_spread_where_there_is_one():
    chart = LineChart(
        "t",
        "step",
        "loss",
        [
            Series("train", [(1.0, 4.0), (2.5, 3.0)]),
            Series("dev", [(0, math.nan), (2.5, 3.5)], band=[(2.5, 3.25, 3.75)]),
        ],
    )
    columns, rows = chart.tabulate()
    assert columns == ["step", "train", "dev"]
    assert rows[1:] == [
        [1, MetricCell(4.0), ""],
        [2.5, MetricCell(3.0), MetricCell(3.5, interval=(3.25, 3.75))],
    ]
    assert rows[0][:2] == [0, ""]
    assert math.isnan(rows[0][2].value)


def test_the_axis_begins_at_zero_where_asked():
    assert "0" in words(draw(Series("a", [(5, 100.0), (6, 101.0)]), starts_at_zero=True))
    assert "0" not in words(draw(Series("a", [(5, 100.0), (6, 101.0)])))


def test_the_legend_leaves_out_what_is_not_drawn():
    chart = LineChart("t", "x", "y", [Series("none", []), Series("some", [(1, 1.0)])])
    assert chart.legend() == [("series series-1", "some")]
