"""Metrics of texts that models write: ROUGE, BLEU and chrF, against references."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from bertkit.base.errors import InputError, MissingExtraError
from bertkit.base.extras import describe_install
from bertkit.tasks.metrics.classification import check_lengths
from bertkit.tokenization.words import split_words

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics import BLEU, CHRF

ROUGE = ("rouge1", "rouge2", "rougeL")

MAX_WORDS = 4096  # per text; the longest common subsequence takes a cell for each pair of words


class _Words:
    """The tokenizer interface of rouge-score."""

    def tokenize(self, text: str) -> list[str]:
        """Return the first `MAX_WORDS` words of a text, in lower case."""
        return split_words(text)[:MAX_WORDS]


def check_texts(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Check that there are as many hypotheses as references, at least one, and all are texts."""
    for name, texts in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(texts, str):
            raise InputError(f"{name} must be a list of texts, not one text; put it into a list")
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(f"{name}[{number}] must be a text, not {type(text).__name__}")
    check_lengths(hypotheses=hypotheses, references=references)


def measure_summaries(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Score summaries against references; only the first `MAX_WORDS` words of each text count.

    The means of F1, from 0 to 1, of `rouge1` (unigrams), `rouge2` (bigrams) and `rougeL` (longest
    common subsequence over the whole text). An empty summary scores 0.
    """
    check_texts(hypotheses, references)
    scorer = _load_scorer()
    sums = dict.fromkeys(ROUGE, 0.0)
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        scores = scorer.score(reference, hypothesis)
        for name in ROUGE:
            sums[name] += float(scores[name].fmeasure)
    return {name: total / len(hypotheses) for name, total in sums.items()}


def summary_signatures(_: int = 2) -> dict[str, str]:
    """Describe how `measure_summaries` computes each metric; the argument has no effect."""
    _load_scorer()
    words = "letters, digits and marks, or a character of scripts without blanks"
    text = (
        f"mean F1|words:{words}, the first {MAX_WORDS}|case:lower|stem:no"
        f"|version:{version('rouge-score')}"
    )
    return dict.fromkeys(ROUGE, text)


def _load_scorer() -> "RougeScorer":
    """Load rouge-score's scorer."""
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise MissingExtraError(
            f"rouge-score, which measures summaries, can't be loaded ({error});"
            f" {describe_install('summarize')}"
        ) from None
    return RougeScorer(list(ROUGE), tokenizer=_Words())


def measure_translation(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Score translations against references by `bleu` and `chrf`, from 0 to 100.

    Both are plain text, not tokenized; an empty translation counts as missing words. For a single
    sentence, BLEU uses only the n-gram orders that it has ("effective order"), because otherwise a
    sentence of three words would always score 0.
    """
    check_texts(hypotheses, references)
    return {
        name: float(metric.corpus_score(list(hypotheses), [list(references)]).score)
        for name, metric in _load_metrics(len(hypotheses)).items()
    }


def translation_signatures(num_texts: int = 2) -> dict[str, str]:
    """Return the sacreBLEU signatures of `measure_translation` for one text or several."""
    found = {}
    for name, metric in _load_metrics(num_texts).items():
        metric.corpus_score([""], [[""]])  # sets the number of references in the signature
        found[name] = str(metric.get_signature())
    return found


def _load_metrics(num_texts: int) -> "dict[str, BLEU | CHRF]":
    """Create sacreBLEU's metrics for a number of texts."""
    try:
        from sacrebleu.metrics import BLEU, CHRF
    except ImportError as error:
        raise MissingExtraError(
            f"sacreBLEU, which measures translations, can't be loaded ({error});"
            f" {describe_install('translate')}"
        ) from None
    # `force` suppresses the warning that texts look tokenized.
    return {"bleu": BLEU(effective_order=num_texts == 1, force=True), "chrf": CHRF()}


@dataclass(frozen=True)
class WritingMetrics:
    """How the texts that a model writes are scored."""

    best_by: str  # the metric that selects the best step
    measure: Callable[[Sequence[str], Sequence[str]], dict[str, float]]  # against references
    describe: Callable[[int], dict[str, str]]  # number of texts → a signature of each metric


WRITING_METRICS = {
    "translate": WritingMetrics("bleu", measure_translation, translation_signatures),
    "summarize": WritingMetrics("rougeL", measure_summaries, summary_signatures),
}
