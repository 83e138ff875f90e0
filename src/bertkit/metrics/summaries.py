"""ROUGE of summaries, computed by Google's rouge-score.

Its own way of finding words knows the letters a to z alone, so that a text in another script would
have none. Here a word is a run of letters, digits and marks on them, of any script, which is the
same for English. In scripts that put no blanks between words each character is one.

Source: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries".
"""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bertkit.base.errors import MissingExtraError
from bertkit.metrics.texts import check_texts
from bertkit.metrics.words import split_words

ROUGE = ("rouge1", "rouge2", "rougeL")

MAX_WORDS = 4096  # of a text; the longest common row takes a cell for each two words of two texts


class _Words:
    """Finds words, in the form that rouge-score asks for."""

    def tokenize(self, text: str) -> list[str]:
        """The first words of a text in small letters."""
        return split_words(text)[:MAX_WORDS]


def measure_summaries(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Hold summaries against those that people wrote; of each the first `MAX_WORDS` words count.

    Args:
        hypotheses: what was written; an empty one scores 0.
        references: one for each.

    Returns:
        `rouge1`, `rouge2` (words, and two in a row, that both have) and `rougeL` (the longest row
        of words that both have in this order, over the whole text): means of F1, from 0 to 1.
    """
    check_texts(hypotheses, references)
    scorer = _load_scorer()
    sums = dict.fromkeys(ROUGE, 0.0)
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        scores = scorer.score(reference, hypothesis)
        for name in ROUGE:
            sums[name] += float(scores[name].fmeasure)
    return {name: total / len(hypotheses) for name, total in sums.items()}


def signatures(_: int = 2) -> dict[str, str]:
    """How `measure_summaries` computes each metric, whatever the number of texts."""
    _load_scorer()
    words = "letters, digits and marks, or a character of scripts without blanks"
    text = (
        f"mean F1|words:{words}, the first {MAX_WORDS}|case:lower|stem:no"
        f"|version:{version('rouge-score')}"
    )
    return dict.fromkeys(ROUGE, text)


def _load_scorer() -> Any:
    """rouge-score's scorer."""
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise MissingExtraError(
            f"rouge-score, which measures summaries, can't be loaded ({error});"
            " pip install 'bertkit[summarize]'"
        ) from None
    return RougeScorer(list(ROUGE), tokenizer=_Words())
