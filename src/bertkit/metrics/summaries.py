"""ROUGE of summaries, computed by Google's rouge-score.

Its own way of finding words knows the letters a to z alone, so that a text in another script would
have none. Here a word is a run of letters, digits and marks on them, of any script, which is the
same for English. In scripts that put no blanks between words each character is one.

Source: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries".
"""

import re
import unicodedata
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bertkit.base.errors import MissingExtraError
from bertkit.metrics.texts import check_texts

ROUGE = ("rouge1", "rouge2", "rougeL")

# Characters of scripts that put no blanks between words.
UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # what stands for ideographs, kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # ideographs
)
UNSPACED_WORD = re.compile(rf"[{UNSPACED}][^\w\s]*")  # where signs are gone, marks are what is left


class _Words:
    """Finds words, in the form that rouge-score asks for."""

    def tokenize(self, text: str) -> list[str]:
        """The words of a text in small letters."""
        return split_words(text)


def split_words(text: str) -> list[str]:
    """The words of a text, in small letters and without signs.

    In Chinese, Japanese, Thai, Lao, Khmer and Burmese each character is one, with the marks on it.
    """
    unsigned = "".join(char if _is_of_word(char) else " " for char in text.lower())
    return UNSPACED_WORD.sub(r" \g<0> ", unsigned).split()


def _is_of_word(char: str) -> bool:
    """Whether it is a letter, a digit or a mark on one, as vowels of Devanagari and Tamil are."""
    return char.isalnum() or unicodedata.category(char).startswith("M")


def measure_summaries(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Hold summaries against those that people wrote.

    Args:
        hypotheses: what was written; an empty one scores 0.
        references: one for each.

    Returns:
        `rouge1`, `rouge2` (words, and two in a row, that both have) and `rougeL` (the longest row
        of words that both have in this order, over the whole text): means of F1, from 0 to 1.

    Raises:
        InputError: there aren't as many of both, or there is none.
        MissingExtraError: rouge-score isn't installed.
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
    """How `measure_summaries` computes each metric, whatever the number of texts.

    Raises:
        MissingExtraError: rouge-score isn't installed.
    """
    _load_scorer()
    words = "letters, digits and marks, or a character of scripts without blanks"
    text = f"mean F1|words:{words}|case:lower|stem:no|version:{version('rouge-score')}"
    return dict.fromkeys(ROUGE, text)


def _load_scorer() -> Any:
    """rouge-score's scorer.

    Raises:
        MissingExtraError: rouge-score isn't installed, or can't be loaded.
    """
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise MissingExtraError(
            f"rouge-score, which measures summaries, can't be loaded ({error});"
            " pip install 'bertkit[summarize]'"
        ) from None
    return RougeScorer(list(ROUGE), tokenizer=_Words())
