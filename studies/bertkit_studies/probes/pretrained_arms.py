"""Arms and scales of pre-training studies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bertkit_studies.probes.downstream import MAX_LENGTH, TaskTuning
from bertkit_studies.probes.frozen_bilstm import BiLstm
from bertkit_studies.study import Arm


@dataclass(frozen=True)
class PretrainedArm(Arm):
    """An arm of a pre-training study.

    Attributes:
        changes: pre-training settings that differ from the study's.
        shares: the arm whose pre-trained model it uses; None if it pre-trains its own.
        starts_from: the arm whose finished model it goes on from; None for random weights. It is
            measured at the end only.
        token_share: the share of the study's tokens that it reads.
        fine_tuning: fine-tuning settings that differ from the study's.
        bilstm: what is trained on its frozen encoder instead of fine-tuning it.
    """

    changes: Mapping[str, Any] = field(default_factory=dict)
    shares: str | None = None
    starts_from: str | None = None
    token_share: float = 1.0
    fine_tuning: Mapping[str, Any] = field(default_factory=dict)
    bilstm: BiLstm | None = None

    @property
    def pretrained(self) -> str:
        """Folder name of its pre-trained models."""
        return self.shares or self.name


@dataclass(frozen=True)
class PretrainingScale:
    """Model size and budgets of a study.

    Attributes:
        pretraining: pre-training settings of all arms, before an arm's own changes.
        tokens: pre-training budget of a cell.
        fine_tuning: fine-tuning settings.
    """

    pretraining: Mapping[str, Any]
    tokens: int
    fine_tuning: TaskTuning


# `max_length` as in fine-tuning: a frozen encoder can't learn further position embeddings.
SCALES = {
    "small": PretrainingScale(
        {"size": "tiny", "max_length": MAX_LENGTH, "batch_size": 8, "learning_rate": 1e-3},
        tokens=400_000,
        fine_tuning=TaskTuning(num_train=1_000, num_dev=500, learning_rate=1e-3),
    ),
    "large": PretrainingScale(
        {"size": "mini", "max_length": MAX_LENGTH, "batch_size": 32, "learning_rate": 1e-3},
        tokens=20_000_000,
        fine_tuning=TaskTuning(num_train=8_000, num_dev=2_000, learning_rate=1e-4),
    ),
}
