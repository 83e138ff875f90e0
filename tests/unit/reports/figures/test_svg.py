"""Drawings' colors: what is written on them can be read."""

import re
from importlib import resources

import pytest

from bertkit.reports.figures.svg import DARK, LIGHT, NUM_STYLES, drawing_style, series_style


def luminance(color: str) -> float:
    """Source: WCAG 2.2, relative luminance."""
    channels = [int(color[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    ]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    dark, light = sorted(map(luminance, (first, second)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK])
@pytest.mark.parametrize("ground", ["page", "panel", "right", "wrong", "mark"])
def test_text_can_be_read_on_every_ground(palette, ground):
    assert contrast(palette["text"], palette[ground]) >= 4.5


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_lines_and_quiet_words_stand_out_from_the_page(palette):
    assert contrast(palette["quiet"], palette["page"]) >= 4.5
    for index in range(NUM_STYLES):
        assert contrast(palette[f"c{index}"], palette["page"]) >= 4.0


def test_both_palettes_have_the_colors_that_the_style_asks_for():
    source = resources.files("bertkit.reports").joinpath("drawing.css").read_text(encoding="utf-8")
    assert set(re.findall(r"\$(\w+)", source)) <= LIGHT.keys()
    assert LIGHT.keys() == DARK.keys()
    style = drawing_style(LIGHT)
    assert "$" not in style
    assert all(f".{series_style(index).split()[1]} " in style for index in range(2 * NUM_STYLES))
