"""Figures of attention as files."""

import pytest
from tests.unit.reports.figures.checks import HOSTILE, LONG, check_file, check_harmless, check_small

from bertkit.interpret.figures.alignment_figure import AlignmentFigure
from bertkit.interpret.figures.attention_figure import AttentionFigure
from bertkit.interpret.figures.scatter import Scatter


def pictures(name: str) -> list:
    weights = [[0.5, 0.5], [1.0, 0.0]]
    return [
        AttentionFigure(name, [name, "b"], weights, focus=0),
        AlignmentFigure(name, [name, "b"], ["c", name], weights),
        Scatter(name, [(0.0, 1.0), (2.0, 3.0)], [name, "b"], (0.5, 0.25)),
    ]


@pytest.mark.parametrize("number", range(3))
def test_figures_are_whole_harmless_and_small(number, tmp_path):
    check_file(pictures("a plain name")[number], tmp_path / "picture.svg")
    check_harmless(pictures(HOSTILE)[number])
    check_small(pictures(LONG)[number])
