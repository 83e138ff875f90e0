"""Regression: predict a number for a text or a pair of texts; read `task.py` first.

Source: Devlin et al. 2018, section 4.1 (STS-B): C, then a linear layer with one output.
"""

from collections.abc import Sequence
from typing import ClassVar

from bertkit.tasks.settings import USUAL_TEXT, LabelColumn, TextSettings


class RegressSettings(TextSettings):
    """Settings of regression."""

    label_column: LabelColumn = None

    usual_columns: ClassVar = {
        "text": USUAL_TEXT,
        "label": ("label", "labels", "score", "similarity", "similarity_score"),
    }
    learns_numbers: ClassVar = True

    def choose_metric(self, labels: Sequence[str] = ()) -> str:
        """Return the correlation."""
        del labels
        return "pearson"
