"""Whether the system has a font, without which a PNG has no text."""

import pytest

from bertkit.base.errors import MissingExtraError
from bertkit.interpret.figures.attention_figure import AttentionFigure
from bertkit.reports.figures.picture import render_png


def need_font() -> None:
    """Skip a test where there is none."""
    try:
        render_png(AttentionFigure("a", ["a"], [[1.0]]))
    except MissingExtraError as error:
        pytest.skip(str(error))
