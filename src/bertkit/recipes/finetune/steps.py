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


def choose_epochs(
    settings: FineTuneSettings, steps_per_epoch: int, *, has_solved_head: bool = False
) -> float:
    """Return the requested epochs, or the default: more for few examples and a random head."""
    if settings.epochs is not None:
        return settings.epochs
    if has_solved_head:
        return DEFAULT_EPOCHS
    needed = float(-(-ENOUGH_STEPS // steps_per_epoch))
    return min(MOST_EPOCHS, max(DEFAULT_EPOCHS, needed))


def decide_steps(
    settings: FineTuneSettings, steps_per_epoch: int, *, has_solved_head: bool = False
) -> int:
    """Return the number of steps of the run; announce if they differ from the paper or are few.

    Args:
        settings: the settings common to all tasks.
        steps_per_epoch: as `count_epoch_steps` returns them.
        has_solved_head: whether the head is solved before the first step.
    """
    if settings.features == "linear":
        return 0
    epochs = choose_epochs(settings, steps_per_epoch, has_solved_head=has_solved_head)
    num_steps = max(1, round(steps_per_epoch * epochs))
    if settings.epochs is None and epochs > DEFAULT_EPOCHS:
        announce(
            f"training for {pluralize(epochs, 'epoch')}, since {DEFAULT_EPOCHS:g} would be"
            f" {pluralize(round(steps_per_epoch * DEFAULT_EPOCHS), 'step')}; --epochs changes that"
        )
    elif settings.epochs is not None and num_steps < TOO_FEW_STEPS and not has_solved_head:
        announce(
            f"training for {pluralize(epochs, 'epoch')}, {pluralize(num_steps, 'step')}; with under"
            f" {TOO_FEW_STEPS} fine-tuning often learns nothing: ask for more epochs, or for"
            " smaller batches"
        )
    return num_steps


def count_epoch_steps(num_examples: int, settings: FineTuneSettings) -> int:
    """Return the number of steps in an epoch."""
    return EpochOrder(num_examples, settings.batch_size, settings.seed).steps_per_epoch
