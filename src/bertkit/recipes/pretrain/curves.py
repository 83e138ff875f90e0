"""The curves specific to pre-training runs, beside those that every run has."""

from bertkit.objectives.settings import ObjectiveName
from bertkit.training.records.sections import Curve

MASKED_WORDS = (
    Curve("mlm_loss", "Masked words, loss", "nats"),
    Curve("mlm_accuracy", "Masked words, accuracy", "of blanks", is_percent=True),
)
NEXT_SENTENCE = (Curve("nsp_accuracy", "Next sentence, accuracy", "of pairs", is_percent=True),)
NEXT_WORD = (
    Curve("clm_loss", "Next word, loss", "nats"),
    Curve("clm_accuracy", "Next word, accuracy", "of words", is_percent=True),
)
# By objective: first loss and accuracy of words, then the objective's other metrics.
CURVES: dict[ObjectiveName, tuple[Curve, ...]] = {
    "bert": (*MASKED_WORDS, *NEXT_SENTENCE),
    "mlm": MASKED_WORDS,
    "causal": NEXT_WORD,
}
