"""ROUGE of summaries, computed by Google's rouge-score.

Its own tokenizer knows only the letters a to z, so a text in another script would have no words.
Here a word is a run of letters, digits and combining marks of any script, which is the same for
English. In scripts without spaces between words, each character is a word.

Source: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries".
"""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bertkit.base.errors import MissingExtraError
from bertkit.metrics.texts import check_texts
from bertkit.metrics.words import split_words

ROUGE = ("rouge1", "rouge2", "rougeL")

MAX_WORDS = 4096  # per text; the longest common subsequence takes a cell for each pair of words


class _Words:
    """The tokenizer interface of rouge-score."""

    def tokenize(self, text: str) -> list[str]:
        """Return the first `MAX_WORDS` words of a text, in lower case."""
        return split_words(text)[:MAX_WORDS]


def measure_summaries(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Score summaries against references; only the first `MAX_WORDS` words of each text count.

    Args:
        hypotheses: the generated summaries; an empty one scores 0.
        references: one reference for each.

    Returns:
        `rouge1` (unigrams), `rouge2` (bigrams) and `rougeL` (longest common subsequence over the
        whole text): means of F1, from 0 to 1.
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
    """Describe how `measure_summaries` computes each metric; the argument has no effect."""
    _load_scorer()
    words = "letters, digits and marks, or a character of scripts without blanks"
    text = (
        f"mean F1|words:{words}, the first {MAX_WORDS}|case:lower|stem:no"
        f"|version:{version('rouge-score')}"
    )
    return dict.fromkeys(ROUGE, text)


def _load_scorer() -> Any:
    """Load rouge-score's scorer."""
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise MissingExtraError(
            f"rouge-score, which measures summaries, can't be loaded ({error});"
            " pip install 'bertkit[summarize]'"
        ) from None
    return RougeScorer(list(ROUGE), tokenizer=_Words())
