"""Pictures as files of their own: whole, well-formed, and with all that the page gave them."""

import math
from xml.etree import ElementTree as ET

import pytest

from bertkit.base.errors import InputError
from bertkit.interpret.figures.alignment_figure import AlignmentFigure
from bertkit.interpret.figures.attention_figure import AttentionFigure
from bertkit.interpret.figures.scatter import Scatter
from bertkit.reports.figures.confusion_matrix import ConfusionMatrix
from bertkit.reports.figures.line_chart import LineChart, Series
from bertkit.reports.figures.picture import render_svg, write_picture
from bertkit.reports.figures.reliability import Bin, ReliabilityCurve, ReliabilityDiagram
from bertkit.reports.figures.svg import DARK, LIGHT

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</style></svg><script>alert(1)</script>\x00\x1b\ud800\ufffe\u202e&\"'"


def pictures(name: str) -> list:
    bins = [Bin(math.nan, math.nan, 0), Bin(0.75, 0.5, 4)]
    return [
        LineChart(name, name, name, [Series(name, [(1, 2), (2, 3)]), Series("b", [(1, 3)])]),
        LineChart(name, name, name, []),
        ConfusionMatrix(name, [name, "b"], {(0, 0): 1, (0, 1): 2, (1, 0): 3, (1, 1): 4}, unit=name),
        ConfusionMatrix(name, [], {}),
        ReliabilityDiagram(name, [ReliabilityCurve(name, bins)], unit=name),
        AttentionFigure(name, [name, "b"], [[0.5, 0.5], [1.0, 0.0]], focus=0),
        AlignmentFigure(name, [name, "b"], ["c", name], [[0.5, 0.5], [1.0, 0.0]]),
        Scatter(name, [(0.0, 1.0), (2.0, 3.0)], [name, "b"], (0.5, 0.25)),
    ]


@pytest.mark.parametrize("picture", pictures("a plain name"))
def test_a_file_needs_no_page(picture, tmp_path):
    path = tmp_path / "picture.svg"
    record = write_picture(path, picture)
    assert record.size_bytes == path.stat().st_size
    svg = ET.parse(path).getroot()
    assert svg.tag == f"{SVG}svg"
    assert svg.get("viewBox") == f"0 0 {svg.get('width')} {svg.get('height')}"
    assert [part.tag for part in svg][:3] == [f"{SVG}title", f"{SVG}desc", f"{SVG}style"]
    style = svg.find(f"{SVG}style").text
    assert "var(" not in style
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    for name in ("page", "text", "right", "c0"):
        assert (LIGHT[name] in light, DARK[name] in dark) == (True, True)
    texts = [text.text for text in svg.iter(f"{SVG}text")]
    assert texts[0] == f"a plain name ({picture.unit})"
    assert texts[1 : 1 + len(picture.legend())] == [name for _, name in picture.legend()]
    inside = ET.fromstring(picture.draw())
    assert len(list(svg.iter(f"{SVG}text"))) == (
        len(list(inside.iter("text"))) + 1 + len(picture.legend())
    )


@pytest.mark.parametrize("picture", pictures(HOSTILE))
def test_hostile_names_leave_a_file_well_formed_and_harmless(picture):
    svg = ET.fromstring(render_svg(picture).encode())
    assert not list(svg.iter(f"{SVG}script"))
    assert len(list(svg.iter(f"{SVG}style"))) == 1
    assert "<script" not in render_svg(picture) + picture.draw()
    assert svg.find(f"{SVG}title").text.startswith(
        "</style></svg><script>alert(1)</script>␀␛\ufffd"
    )


def test_names_of_a_hundred_thousand_characters_leave_a_file_small():
    for picture in pictures("z" * 100_000):
        drawing = render_svg(picture)
        assert len(drawing) < 20_000
        assert float(ET.fromstring(drawing).get("width")) < 1000


def test_what_only_a_table_shows_is_refused():
    names = [f"label {index}" for index in range(31)]
    matrix = ConfusionMatrix("Many", names, {})
    with pytest.raises(InputError, match="“Many” has too many parts to be drawn"):
        render_svg(matrix)
