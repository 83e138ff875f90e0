"""Points lie where they belong, and their names where there is room."""

import math
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from tests.closeness import close

from bertkit.base.errors import InputError
from bertkit.interpret.figures.scatter import HEIGHT, MAX_POINTS, WIDTH, Scatter, place_names
from bertkit.reports.figures.picture import render_svg

POINTS = [(-3.0, 1.0), (1.0, 1.0), (1.0, -2.0)]


def build(points=POINTS, names=None, shares=(0.5, 0.25)):
    return Scatter("Words", points, names or [f"word {n}" for n in range(len(points))], shares)


def find_dots(scatter):
    svg = ET.fromstring(scatter.draw())
    return [(float(dot.get("cx")), float(dot.get("cy"))) for dot in svg.iter("circle")]


def test_distances_are_true_and_axes_say_how_much_they_show():
    first, second, third = find_dots(build())
    assert second[0] - first[0] > 0
    assert first[1] == second[1] < third[1]
    assert math.dist(first, second) / math.dist(second, third) == close(4 / 3, within=1e-3)
    for x, y in (first, second, third):
        assert 0 < x < WIDTH
        assert 0 < y < HEIGHT
    scatter = build()
    texts = [text.text for text in ET.fromstring(scatter.draw()).iter("text")]
    assert texts[:2] == ["50.0 % of the variance", "25.0 % of the variance"]
    assert scatter.unit == "75.0 % of the variance"
    assert "75.0 % of the variance" in render_svg(scatter)


@pytest.mark.parametrize("points", [[(0.0, 0.0)], [(2.0, 5.0)] * 3, [(0.0, 1e-40), (0.0, 0.0)]])
def test_what_lies_in_one_place_is_in_the_middle(points):
    assert set(find_dots(build(points))) == {(WIDTH / 2, HEIGHT / 2)}


def test_names_lie_on_no_name_and_no_point():
    places = [(100.0 + 9 * (n % 10), 100.0 + 9 * (n // 10)) for n in range(100)]
    boxes = place_names(places, [f"name {n}" for n in range(100)])
    shown = [box for box in boxes if box is not None]
    assert 10 < len(shown) < 100
    assert not any(one.overlaps(other) for one, other in combinations(shown, 2))
    assert not any(
        box.left < x < box.right and box.top < y < box.bottom for box in shown for x, y in places
    )


def test_a_name_is_held_next_to_its_point():
    svg = ET.fromstring(build([(0.0, 0.0)] * 4).draw())
    names = [text for text in svg.iter("text") if text.text.startswith("word")]
    held = [(text.get("text-anchor"), float(text.get("x")) - WIDTH / 2) for text in names]
    assert held == [("start", 7), ("end", -7), ("middle", 0), ("middle", 0)]


def test_names_without_room_are_in_the_table():
    scatter = build([(0.0, 0.0)] * 9)
    texts = [text.text for text in ET.fromstring(scatter.draw()).iter("text")]
    assert len([text for text in texts if text.startswith("word")]) == 4  # one on each side
    columns, rows = scatter.tabulate()
    assert columns == ["name", "to the right", "upwards"]
    assert rows[8] == ["word 8", 0.0, 0.0]


def test_too_many_points_are_a_table_only():
    assert find_dots(build([])) == []
    assert build([(0.0, 0.0)] * MAX_POINTS).draw() is not None
    assert build([(0.0, 0.0)] * (MAX_POINTS + 1)).draw() is None


def test_what_isnt_a_point_is_refused():
    with pytest.raises(InputError, match=r"as many names as points \(3\), got 1"):
        build(names=["one"])
    for point in ((1.0,), (1.0, 2.0, 3.0), (math.nan, 0.0), (0.0, math.inf)):
        with pytest.raises(InputError, match="must be two finite numbers"):
            build([point])


def test_a_name_goes_left_at_the_right_border():
    (box,) = place_names([(WIDTH - 10.0, 50.0)], ["river bank"])
    assert box.right < WIDTH - 10
