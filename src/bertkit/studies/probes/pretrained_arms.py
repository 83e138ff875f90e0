"""Arms of a study of pre-training, and how large it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bertkit.studies.probes.downstream import MAX_LENGTH, FineTuning
from bertkit.studies.study import Arm


@dataclass(frozen=True)
class PretrainedArm(Arm):
    """An arm of a study of pre-training.

    Attributes:
        changes: of the settings of pre-training.
        shares: the arm whose pre-trained model it takes; None where it has its own.
        fine_tuning: changes of the settings of fine-tuning.
    """

    changes: Mapping[str, Any] = field(default_factory=dict)
    shares: str | None = None
    fine_tuning: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pretrained(self) -> str:
        """The folder of its pre-trained models."""
        return self.shares or self.name


@dataclass(frozen=True)
class PretrainingScale:
    """How large a study is.

    Attributes:
        pretraining: settings of pre-training that all arms have, but for their own changes.
        tokens: budget of a cell.
        fine_tuning: how it is fine-tuned.
    """

    pretraining: Mapping[str, Any]
    tokens: int
    fine_tuning: FineTuning


# As long as what is measured afterwards: an encoder that is frozen learns no more places of a text.
SCALES = {
    "small": PretrainingScale(
        {"model": "tiny", "max_length": MAX_LENGTH, "batch_size": 8, "learning_rate": 1e-3},
        tokens=400_000,
        fine_tuning=FineTuning(num_train=1_000, num_dev=500, learning_rate=1e-3),
    ),
    "large": PretrainingScale(
        {"model": "mini", "max_length": MAX_LENGTH, "batch_size": 32, "learning_rate": 1e-3},
        tokens=20_000_000,
        fine_tuning=FineTuning(num_train=8_000, num_dev=2_000, learning_rate=1e-4),
    ),
}
