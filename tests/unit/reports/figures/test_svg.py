"""Drawings' colors: what is written on them can be read."""

import math
import re
from importlib import resources
from itertools import pairwise

import pytest
from tests.closeness import close

from bertkit.reports.figures.svg import (
    DARK,
    LIGHT,
    MAX_LOGARITHMIC_TICKS,
    NUM_STYLES,
    drawing_style,
    format_tick,
    logarithmic_ticks,
    round_ticks,
    series_style,
)


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


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0.013, 0.0171), (-3, 7), (1e-9, 2e-9), (5, 5), (0, 0), (999, 123456)]
)
def test_ticks_enclose_the_data_and_are_few_and_even(low, high):
    ticks = round_ticks(low, high, 5)
    assert ticks[0] <= low + 1e-12
    assert ticks[-1] >= high - 1e-12
    assert 3 <= len(ticks) <= 8
    steps = [later - earlier for earlier, later in pairwise(ticks)]
    assert max(steps) == close(min(steps), floor=0)
    mantissa = steps[0] / 10 ** math.floor(math.log10(steps[0]) + 1e-9)
    assert any(mantissa == close(round_step) for round_step in (1, 2, 2.5, 5))


def test_ticks_are_short():
    shown = [format_tick(value) for value in (0, 0.25, 1500, 20_000, 3e6, 2.5e9, -40_000)]
    assert shown == ["0", "0.25", "1500", "20k", "3M", "2.5G", "-40k"]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (100, 67_349, (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)),
        (1, 10, (1, 2, 5, 10)),
        (3, 40, (2, 5, 10, 20, 50)),
        (0.02, 0.3, (0.02, 0.05, 0.1, 0.2, 0.5)),
        (7, 7, (2, 5, 10, 20)),
        (3000, 3001, (1000, 2000, 5000, 10_000)),
        (1, 1e4, (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)),
        (1, 1e9, tuple(10.0**power for power in range(10))),
    ],
)
def test_logarithmic_ticks_are_round_numbers_that_enclose_the_data(low, high, ticks):
    assert logarithmic_ticks(low, high) == close(ticks)


@pytest.mark.parametrize(("low", "high"), [(1e-150, 1e150), (1e-9, 1e9), (5, 123_456_789_012)])
def test_logarithmic_ticks_stay_few_however_far_the_data_reach(low, high):
    ticks = logarithmic_ticks(low, high)
    assert 3 <= len(ticks) <= MAX_LOGARITHMIC_TICKS + 1
    assert ticks[0] <= low
    assert ticks[1] > low
    assert ticks[-2] < high <= ticks[-1]
    ratios = [math.log10(later / earlier) for earlier, later in pairwise(ticks)]
    assert max(ratios) == close(min(ratios))
