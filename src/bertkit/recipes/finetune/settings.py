"""What can be chosen about fine-tuning, whatever the task."""

from typing import Annotated

from pydantic import Field

from bertkit.data.tables.settings import RecordSettings
from bertkit.training.settings import Count, LoopSettings, Positive

DEFAULT_EPOCHS = 3.0


class FineTuneSettings(LoopSettings, RecordSettings):
    """Settings of `bertkit finetune`; the defaults are those of the paper (appendix A.3)."""

    epochs: Positive | None = Field(
        None,
        description=f"How often every example is seen; by default {DEFAULT_EPOCHS:g}, and more"
        " where that would be too few steps to learn from.",
    )
    batch_size: Count = Field(32, description="Examples of one optimiser step.")
    learning_rate: Positive = Field(3e-5, description="Peak learning rate.")
    patience: Count | None = Field(
        None,
        description="Epochs without a better value of the metric after which the run ends; by"
        " default it goes on to its end, and its best epoch is kept.",
    )
    held_out: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        0.1, description="Share of the training examples that is held out where --dev isn't given."
    )
