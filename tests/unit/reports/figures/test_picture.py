"""Pictures as files of their own, in the form that their names say."""

import math
import re
import sys
from types import SimpleNamespace

import pytest
from tests.fonts import need_font
from tests.unit.reports.figures.checks import HOSTILE, LONG, check_file, check_harmless, check_small

from bertkit.base.errors import InputError, MissingExtraError, SettingsError, StorageError
from bertkit.base.extras import describe_install
from bertkit.reports.figures.confusion_matrix import ConfusionMatrix
from bertkit.reports.figures.line_chart import LineChart, Series
from bertkit.reports.figures.picture import render_png, render_svg, write_picture
from bertkit.reports.figures.reliability import Bin, ReliabilityCurve, ReliabilityDiagram

SIGNATURE = b"\x89PNG\r\n\x1a\n"
FIGURE = ConfusionMatrix("Layer 1", ["a", "b"], {(0, 0): 1})


def pictures(name: str) -> list:
    bins = [Bin(math.nan, math.nan, 0), Bin(0.75, 0.5, 4)]
    return [
        LineChart(name, name, name, [Series(name, [(1, 2), (2, 3)]), Series("b", [(1, 3)])]),
        LineChart(name, name, name, []),
        ConfusionMatrix(name, [name, "b"], {(0, 0): 1, (0, 1): 2, (1, 0): 3, (1, 1): 4}, unit=name),
        ConfusionMatrix(name, [], {}),
        ReliabilityDiagram(name, [ReliabilityCurve(name, bins)], unit=name),
    ]


@pytest.mark.parametrize("picture", pictures("a plain name"))
def test_a_file_needs_no_page(picture, tmp_path):
    check_file(picture, tmp_path / "picture.svg")


@pytest.mark.parametrize("picture", pictures(HOSTILE))
def test_hostile_names_leave_a_file_well_formed_and_harmless(picture):
    check_harmless(picture)


def test_names_of_a_hundred_thousand_characters_leave_a_file_small():
    for picture in pictures(LONG):
        check_small(picture)


def test_what_only_a_table_shows_is_refused():
    names = [f"label {index}" for index in range(31)]
    matrix = ConfusionMatrix("Many", names, {})
    with pytest.raises(InputError, match="“Many” has too many parts to be drawn"):
        render_svg(matrix)


def test_the_end_of_the_name_says_the_form(tmp_path):
    need_font()
    svg, png = tmp_path / "figure.svg", tmp_path / "figure.PNG"
    write_picture(svg, FIGURE)
    assert svg.read_text("utf-8") == render_svg(FIGURE)
    record = write_picture(png, FIGURE)
    assert png.read_bytes()[:8] == SIGNATURE
    assert record.size_bytes == png.stat().st_size
    with pytest.raises(SettingsError, match=r"figure\.pdf must end with \.svg or \.png"):
        write_picture(tmp_path / "figure.pdf", FIGURE)


def test_a_png_has_300_dots_an_inch_and_its_text():
    need_font()
    drawn = render_png(FIGURE)
    width, height = (int.from_bytes(drawn[start : start + 4]) for start in (16, 20))
    assert (width, height) == (678, 575)
    other = ConfusionMatrix("Layer 2", FIGURE.names, FIGURE.counts)
    assert render_png(other) != drawn


def test_a_missing_package_or_font_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(MissingExtraError, match=re.escape(describe_install("plots"))):
        render_png(FIGURE)
    blank = SimpleNamespace(svg_to_bytes=lambda **_: SIGNATURE)
    monkeypatch.setitem(sys.modules, "resvg_py", blank)
    with pytest.raises(MissingExtraError, match="no font is installed"):
        render_png(FIGURE)


@pytest.mark.parametrize("name", ["figure.svg", "figure.png"])
def test_a_folder_that_is_not_there_is_an_error_of_ours(tmp_path, name):
    need_font()
    with pytest.raises(StorageError, match="can't be written"):
        write_picture(tmp_path / "missing" / name, FIGURE)
