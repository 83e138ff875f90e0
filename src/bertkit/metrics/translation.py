"""BLEU and chrF of translations, computed by sacreBLEU with its own defaults.

Source: Post 2018, "A Call for Clarity in Reporting BLEU Scores"; Papineni et al. 2002 (BLEU);
Popović 2015 (chrF).
"""

from collections.abc import Sequence
from typing import Any

from bertkit.base.errors import MissingExtraError
from bertkit.metrics.texts import check_texts


def measure_translation(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Score translations against references; both are plain text, not tokenized.

    For a single sentence, BLEU uses only the n-gram orders that it has ("effective order"), because
    otherwise a sentence of three words would always score 0.

    Args:
        hypotheses: the generated translations; an empty one counts as missing words.
        references: one reference for each.

    Returns:
        `bleu` and `chrf`, from 0 to 100.
    """
    check_texts(hypotheses, references)
    return {
        name: float(metric.corpus_score(list(hypotheses), [list(references)]).score)
        for name, metric in _load_metrics(len(hypotheses)).items()
    }


def signatures(num_texts: int = 2) -> dict[str, str]:
    """Return the sacreBLEU signature of each metric that `measure_translation` computes.

    Args:
        num_texts: number of texts; only whether it is one or several matters.
    """
    found = {}
    for name, metric in _load_metrics(num_texts).items():
        metric.corpus_score([""], [[""]])  # sets the number of references in the signature
        found[name] = str(metric.get_signature())
    return found


def _load_metrics(num_texts: int) -> dict[str, Any]:
    """Create sacreBLEU's metrics for a number of texts."""
    try:
        from sacrebleu.metrics import BLEU, CHRF
    except ImportError as error:
        raise MissingExtraError(
            f"sacreBLEU, which measures translations, can't be loaded ({error});"
            " pip install 'bertkit[translate]'"
        ) from None
    # `force` suppresses the warning that texts look tokenized.
    return {"bleu": BLEU(effective_order=num_texts == 1, force=True), "chrf": CHRF()}
