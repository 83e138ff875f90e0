"""BLEU and chrF of translations, computed by sacreBLEU with its own defaults.

Source: Post 2018, "A Call for Clarity in Reporting BLEU Scores"; Papineni et al. 2002 (BLEU);
Popović 2015 (chrF).
"""

from collections.abc import Sequence
from typing import Any

from bertkit.base.errors import MissingExtraError
from bertkit.metrics.texts import check_texts


def measure_translation(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Hold translations against right ones, both as people write them.

    Of one sentence BLEU counts only the lengths of n-grams that it has (its "effective order"),
    since a sentence of three words would else always have 0.

    Args:
        hypotheses: what was written; an empty one counts as words that are missing.
        references: the right translation of each.

    Returns:
        `bleu` and `chrf`, from 0 to 100.
    """
    check_texts(hypotheses, references)
    return {
        name: float(metric.corpus_score(list(hypotheses), [list(references)]).score)
        for name, metric in _load_metrics(len(hypotheses)).items()
    }


def signatures(num_texts: int = 2) -> dict[str, str]:
    """How `measure_translation` computes each metric, in sacreBLEU's own words.

    Args:
        num_texts: that are measured; only whether it is one or several makes a difference.
    """
    found = {}
    for name, metric in _load_metrics(num_texts).items():
        metric.corpus_score([""], [[""]])  # a signature tells the number of references
        found[name] = str(metric.get_signature())
    return found


def _load_metrics(num_texts: int) -> dict[str, Any]:
    """The metrics of sacreBLEU for so many texts."""
    try:
        from sacrebleu.metrics import BLEU, CHRF
    except ImportError as error:
        raise MissingExtraError(
            f"sacreBLEU, which measures translations, can't be loaded ({error});"
            " pip install 'bertkit[translate]'"
        ) from None
    # `force` keeps it from warning of texts that seem to be tokenized; the text is what it is.
    return {"bleu": BLEU(effective_order=num_texts == 1, force=True), "chrf": CHRF()}
