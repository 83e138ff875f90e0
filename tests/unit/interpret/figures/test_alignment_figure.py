"""An alignment as a still drawing: a square for each pair, in its place, named and numbered."""

from xml.etree import ElementTree as ET

import pytest
from tests.closeness import close

from bertkit.base.errors import InputError
from bertkit.interpret.figures.alignment_figure import (
    CELL_HEIGHT,
    CELL_WIDTH,
    MAX_TOKENS,
    AlignmentFigure,
)

WRITTEN = ["a", "bike", "[SEP]"]
READ = ["[CLS]", "Ein", "Fahr", "##rad"]
WEIGHTS = [[0.1, 0.9, 0.0, 0.0], [0.0, 0.05, 0.5, 0.45], [0.25, 0.25, 0.25, 0.25]]


def draw() -> ET.Element:
    return ET.fromstring(AlignmentFigure("Cross", WRITTEN, READ, WEIGHTS).draw())


def find_squares(svg: ET.Element, style: str) -> list[ET.Element]:
    return [box for box in svg.iter("rect") if box.get("class") == style]


def test_each_pair_is_a_square_named_and_as_strong_as_its_weight():
    shades = find_squares(draw(), "right")
    places = [(float(box.get("x")), float(box.get("y"))) for box in shades]
    left, top = places[0]
    assert places == [
        (left + column * CELL_WIDTH, top + row * CELL_HEIGHT)
        for row in range(3)
        for column in range(4)
    ]
    expected = [weight**0.75 for row in WEIGHTS for weight in row]
    found = [float(box.get("fill-opacity")) for box in shades]
    assert found == close(expected, within=1e-3)
    svg = draw()
    titles = [box.find("title").text for box in find_squares(svg, "frame")]
    assert titles[1] == "a → Ein: 90.0 %"
    assert titles[7] == "bike → ##rad: 45.0 %"
    texts = [text.text for text in svg.iter("text")]
    assert texts[:2] == ["source", "target"]
    assert texts[2:9] == [*WRITTEN, *READ]
    assert texts[9:] == ["10 %", "90 %", "50 %", "45 %", *["25 %"] * 4]


def test_it_is_said_in_words_and_in_numbers():
    figure = AlignmentFigure("Cross", WRITTEN, READ, WEIGHTS)
    assert "a → Ein: 90.0 %. bike → Fahr: 50.0 %." in figure.describe()
    columns, rows = figure.tabulate()
    assert columns == ["Number", "Target", "Attends most to"]
    assert rows[1] == [2, "bike", "Fahr 50.0 %, ##rad 45.0 %, Ein 5.0 %"]


@pytest.mark.parametrize(
    ("written", "weights", "message"),
    [
        (WRITTEN[:2], WEIGHTS, "2 tokens to 4 must have as many .*, and has 3 rows of"),
        (WRITTEN, [[1.0]] * 3, r"3 rows of \[1\] columns"),
        (["a"] * 65, [[0.25] * 4] * 65, f"room for {MAX_TOKENS} tokens a side, .* 65 and 4"),
    ],
)
def test_what_does_not_fit_is_refused(written, weights, message):
    with pytest.raises(InputError, match=message):
        AlignmentFigure("Cross", written, READ, weights)
