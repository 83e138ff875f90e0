"""The measures of pre-training studies: masked words, and tasks to fine-tune on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bertkit_studies.probes.frozen_bilstm import BiLstm
from bertkit_studies.probes.text_tasks import GAPS, PAIRS
from bertkit_studies.study import Measure

# A caution of all studies that fine-tune.
BEST_EPOCH = (
    "Fine-tuning keeps its best epoch on the reported held-out examples, so task figures are"
    " slightly optimistic."
)
LABELED = "labeled"  # the task of the user's labeled examples

MASKED_LOSS = Measure(
    "masked_loss",
    "Masked words, held-out loss",
    "nats, of the same held-out masked words",
    is_higher_better=False,
)
MASKED_ACCURACY = Measure(
    "masked_accuracy",
    "Masked words, accuracy",
    "of the same held-out masked words",
    is_percent=True,
)


@dataclass(frozen=True)
class Probe:
    """A task on which arms are fine-tuned, and how.

    Attributes:
        measure: the measure of its score.
        task: a key of `TASK_WRITERS`, or `LABELED` for the examples of the settings.
        fine_tuning: fine-tuning settings that differ from the study's.
        bilstm: what is trained on the frozen encoder instead of fine-tuning it; None for neither.
        is_course: whether it is measured at every part of pre-training, not only at the end.
    """

    measure: Measure
    task: str
    fine_tuning: Mapping[str, Any] = field(default_factory=dict)
    bilstm: BiLstm | None = None
    is_course: bool = False


GAPS_PROBE = Probe(
    Measure(
        "gaps",
        "Gap detection, after fine-tuning",
        "accuracy of held-out words",
        is_percent=True,
    ),
    GAPS,
    is_course=True,
)
PAIRS_PROBE = Probe(
    Measure(
        "pairs", "Same document or not, after fine-tuning", "accuracy, held out", is_percent=True
    ),
    PAIRS,
)
LABELED_PROBE = Probe(
    Measure(
        "labeled", "The labeled examples, after fine-tuning", "the task's metric", is_percent=True
    ),
    LABELED,
)
