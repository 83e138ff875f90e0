"""Attention as a still drawing: a line for each link, in the right place and of the right look."""

import math
from xml.etree import ElementTree as ET

import pytest
from tests.closeness import close

from bertkit.base.errors import InputError
from bertkit.interpret.figures.attention_figure import (
    GAP,
    MAX_TOKENS,
    ROW_HEIGHT,
    SPAN,
    TOP,
    AttentionFigure,
)
from bertkit.reports.figures.picture import render_svg

TOKENS = ["[CLS]", "it", "[SEP]"]
WEIGHTS = [[0.25, 0.745, 0.005], [0.04, 0.0, 0.96], [1.0, 0.0, 0.0]]
LEFT = 90.0


def draw(**changes: object) -> ET.Element:
    return ET.fromstring(AttentionFigure("Layer 1", TOKENS, WEIGHTS, **changes).draw())


def find_lines(svg: ET.Element) -> dict[tuple[float, float], float]:
    """The opacity of each line, under the heights of its ends."""
    return {
        (float(line.get("y1")), float(line.get("y2"))): float(line.get("stroke-opacity"))
        for line in svg.iter("line")
    }


def middle(token: int) -> float:
    return TOP + ROW_HEIGHT * token + ROW_HEIGHT / 2


def test_each_link_that_counts_is_a_line_from_the_left_to_the_right():
    svg = draw()
    expected = {(0, 0): 0.25, (0, 1): 0.745, (1, 0): 0.04, (1, 2): 0.96, (2, 0): 1.0}
    assert find_lines(svg) == {
        (middle(source), middle(target)): close(math.sqrt(weight), within=1e-3)
        for (source, target), weight in expected.items()
    }
    ends = {(float(line.get("x1")), float(line.get("x2"))) for line in svg.iter("line")}
    assert ends == {(LEFT + GAP, LEFT + SPAN - GAP)}
    strengths = [float(line.get("stroke-opacity")) for line in svg.iter("line")]
    assert strengths == sorted(strengths)  # what is drawn last lies on top


def test_one_token_can_be_shown_alone_with_its_numbers():
    svg = draw(focus=1)
    assert find_lines(svg).keys() == {(middle(1), middle(0)), (middle(1), middle(2))}
    texts = {text.text: text for text in svg.iter("text")}
    assert texts.keys() >= {"4.0 %", "96.0 %"}
    assert float(texts["96.0 %"].get("y")) == middle(2) + 4
    shades = {float(box.get("y")): box.get("opacity") for box in svg.iter("rect")}
    assert shades == {TOP: "0.040", TOP + 2 * ROW_HEIGHT: "0.960"}
    [bold] = [text.text for text in svg.iter("text") if text.get("class") == "heading"]
    assert bold == "it"
    assert {text.get("class") for text in draw().iter("text")} == {None, "token"}


def test_words_and_numbers_say_the_same():
    figure = AttentionFigure("Layer 1", TOKENS, WEIGHTS)
    assert figure.describe().endswith(
        "[SEP] → [CLS]: 100.0 %. it → [SEP]: 96.0 %. [CLS] → it: 74.5 %."
    )
    assert figure.tabulate()[1] == [
        [1, "[CLS]", "it 74.5 %, [CLS] 25.0 %, [SEP] 0.5 %"],
        [2, "it", "[SEP] 96.0 %, [CLS] 4.0 %, it 0.0 %"],
        [3, "[SEP]", "[CLS] 100.0 %, it 0.0 %, [SEP] 0.0 %"],
    ]
    alone = AttentionFigure("Layer 1", TOKENS, WEIGHTS, focus=1)
    assert (
        alone.describe()
        == "The tokens that “it” attends to. it → [SEP]: 96.0 %. it → [CLS]: 4.0 %."
    )
    assert [row[0] for row in alone.tabulate()[1]] == [2]
    assert figure.legend()[0][1].endswith("none under 1 %")


def test_what_is_drawn_fits():
    def build(length: int) -> AttentionFigure:
        row = [1 / length] * length
        return AttentionFigure("Many", ["a"] * length, [row] * length)

    assert build(MAX_TOKENS + 1).draw() is None
    assert len(build(MAX_TOKENS + 1).tabulate()[1]) == MAX_TOKENS + 1
    assert build(MAX_TOKENS).draw() is not None
    svg = ET.fromstring(AttentionFigure("t", ["世" * 30] * 3, WEIGHTS).draw())
    assert float(svg.get("viewBox").split()[2]) > SPAN + 2 * 18 * 7
    assert "世" * 8 + "…" in {text.text for text in svg.iter("text")}
    figure = AttentionFigure("Layer 1", TOKENS, WEIGHTS)
    assert figure.legend()[0][1] in render_svg(figure)
    assert figure._repr_svg_() == render_svg(figure)


@pytest.mark.parametrize(
    ("weights", "focus", "message"),
    [
        (
            WEIGHTS[:2],
            None,
            r"3 tokens to 3 must have as many .*, and has 2 rows of \[3\]",
        ),
        ([*WEIGHTS[:2], [1.0]], None, r"3 rows of \[1, 3\] columns"),
        (WEIGHTS, 3, "there is no token 3: they are 0 to 2"),
        (WEIGHTS, -1, "there is no token -1"),
    ],
)
def test_what_does_not_fit_together_is_refused(weights, focus, message):
    with pytest.raises(InputError, match=message):
        AttentionFigure("t", TOKENS, weights, focus)


def test_one_text_can_look_at_another():
    weights = [[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]]
    figure = AttentionFigure("Cross", TOKENS, weights, attended_tokens=["le", "chat"])
    svg = ET.fromstring(figure.draw())
    assert set(find_lines(svg)) == {
        *((middle(0), middle(0)), (middle(0), middle(1))),
        *((middle(1), middle(1)), (middle(2), middle(0))),
    }
    assert [text.text for text in svg.iter("text")][2:] == [*TOKENS, "le", "chat"]
    assert "[SEP] → le: 100.0 %." in figure.describe()
    assert figure.tabulate()[1][1] == [2, "it", "chat 100.0 %, le 0.0 %"]
    with pytest.raises(InputError, match="3 tokens to 2 must have"):
        AttentionFigure("Cross", TOKENS, WEIGHTS, attended_tokens=["le", "chat"])
