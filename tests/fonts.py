"""Whether the system has a font, without which a PNG has no text."""

import pytest

from bertkit.base.errors import MissingExtraError
from bertkit.reports.figures.confusion_matrix import ConfusionMatrix
from bertkit.reports.figures.picture import render_png


def need_font() -> None:
    """Skip a test where there is none."""
    try:
        render_png(ConfusionMatrix("a", ["a"], {(0, 0): 1}))
    except MissingExtraError as error:
        pytest.skip(str(error))
