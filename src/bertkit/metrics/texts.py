"""Input checks that all metrics of generated texts share."""

from collections.abc import Sequence

from bertkit.base.errors import InputError
from bertkit.metrics.examples import check_lengths


def check_texts(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Check that there are as many hypotheses as references, at least one, and all are texts."""
    for name, texts in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(texts, str):
            raise InputError(f"{name} must be a list of texts, not one text; put it into a list")
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(f"{name}[{number}] must be a text, not {type(text).__name__}")
    check_lengths(hypotheses=hypotheses, references=references)
