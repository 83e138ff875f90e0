"""Regression: predict a number for a text or a pair of texts; read `task.py` first.

Source: Devlin et al. 2018, section 4.1 (STS-B): C, then a linear layer with one output.
"""

from collections.abc import Sequence

from bertkit.tasks.settings import LabelColumn, TextSettings


class RegressSettings(TextSettings):
    """Settings of regression."""

    label_column: LabelColumn = None

    def choose_metric(self, labels: Sequence[str] = ()) -> str:
        """Return the correlation."""
        del labels
        return "pearson"
