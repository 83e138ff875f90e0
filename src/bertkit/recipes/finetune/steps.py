"""Chooses the number of steps: enough to learn, even from few examples."""

from bertkit.base.progress import announce
from bertkit.base.wording import pluralize
from bertkit.data.epochs import EpochOrder
from bertkit.recipes.finetune.settings import (
    DEFAULT_EPOCHS,
    ENOUGH_STEPS,
    MOST_EPOCHS,
    TOO_FEW_STEPS,
    FineTuneSettings,
)


def choose_epochs(settings: FineTuneSettings, steps_per_epoch: int) -> float:
    """Return the requested epochs, or the default, which is larger for few examples."""
    if settings.epochs is not None:
        return settings.epochs
    needed = float(-(-ENOUGH_STEPS // steps_per_epoch))
    return min(MOST_EPOCHS, max(DEFAULT_EPOCHS, needed))


def decide_steps(settings: FineTuneSettings, steps_per_epoch: int) -> int:
    """Return the number of steps of the run; announce if they differ from the paper or are few."""
    epochs = choose_epochs(settings, steps_per_epoch)
    num_steps = max(1, round(steps_per_epoch * epochs))
    if settings.epochs is None and epochs > DEFAULT_EPOCHS:
        announce(
            f"training for {pluralize(epochs, 'epoch')}, since {DEFAULT_EPOCHS:g} would be"
            f" {pluralize(round(steps_per_epoch * DEFAULT_EPOCHS), 'step')}; --epochs changes that"
        )
    elif settings.epochs is not None and num_steps < TOO_FEW_STEPS:
        announce(
            f"training for {pluralize(epochs, 'epoch')}, {pluralize(num_steps, 'step')}; with under"
            f" {TOO_FEW_STEPS} fine-tuning often learns nothing: ask for more epochs, or for"
            " smaller batches"
        )
    return num_steps


def count_epoch_steps(num_examples: int, settings: FineTuneSettings) -> int:
    """Return the number of steps in an epoch."""
    return EpochOrder(num_examples, settings.batch_size, settings.seed).steps_per_epoch
