"""Pictures become files in the form that their names say, and a PNG without text is none."""

import re
import sys
from types import SimpleNamespace

import pytest
from tests.fonts import need_font

from bertkit.base.errors import MissingExtraError, SettingsError, StorageError
from bertkit.base.extras import describe_install
from bertkit.interpret.figures.attention_figure import AttentionFigure
from bertkit.reports.figures.picture import render_png, render_svg, write_picture

FIGURE = AttentionFigure("Layer 1", ["a", "b"], [[0.5, 0.5], [0.0, 1.0]])
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def test_the_end_of_the_name_says_the_form(tmp_path):
    need_font()
    svg, png = tmp_path / "figure.svg", tmp_path / "figure.PNG"
    write_picture(svg, FIGURE)
    assert svg.read_text("utf-8") == render_svg(FIGURE)
    record = FIGURE.write(str(png))
    assert png.read_bytes()[:8] == SIGNATURE
    assert record.size_bytes == png.stat().st_size


def test_another_end_is_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"figure\.pdf must end with \.svg or \.png"):
        FIGURE.write(tmp_path / "figure.pdf")


def test_a_png_has_300_dots_an_inch_and_its_text():
    need_font()
    drawn = render_png(FIGURE)
    width, height = (int.from_bytes(drawn[start : start + 4]) for start in (16, 20))
    assert (width, height) == (1325, 425)
    other = AttentionFigure("Layer 2", FIGURE.tokens, FIGURE.weights)
    assert render_png(other) != drawn


def test_a_missing_package_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(MissingExtraError, match=re.escape(describe_install("plots"))):
        render_png(FIGURE)


def test_a_system_without_a_font_is_told(monkeypatch):
    blank = SimpleNamespace(svg_to_bytes=lambda **_: SIGNATURE)
    monkeypatch.setitem(sys.modules, "resvg_py", blank)
    with pytest.raises(MissingExtraError, match="no font is installed"):
        render_png(FIGURE)


@pytest.mark.parametrize("name", ["figure.svg", "figure.png"])
def test_a_folder_that_is_not_there_is_an_error_of_ours(tmp_path, name):
    need_font()
    with pytest.raises(StorageError, match="can't be written"):
        FIGURE.write(tmp_path / "missing" / name)
