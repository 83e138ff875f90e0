"""What is drawn of a pre-training run beside what every run has."""

from bertkit.training.sections import Curve

MASKED_WORDS = (
    Curve("mlm_loss", "Masked words, loss", "nats"),
    Curve("mlm_accuracy", "Masked words, accuracy", "of blanks", is_percent=True),
)
NEXT_SENTENCE = (Curve("nsp_accuracy", "Next sentence, accuracy", "of pairs", is_percent=True),)
