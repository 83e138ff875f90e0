"""Chooses the number of steps, the evaluation interval and the steps to average."""

import time
from collections.abc import Callable
from dataclasses import replace

from bertkit.base.progress import announce
from bertkit.data.token_batches import TokenBatchOrder
from bertkit.recipes.seq2seq.settings import DEFAULT_MINUTES, MOST_EPOCHS, Seq2SeqSettings
from bertkit.recipes.seq2seq.token_pairs import PairBatch, TokenPairs
from bertkit.training import budget
from bertkit.training.budget import StepPace
from bertkit.training.job import Job, Machine
from bertkit.training.loop import NUM_EVALUATIONS as USUAL_EVALUATIONS

NUM_EVALUATIONS = 20


def order_pairs(pairs: TokenPairs, settings: Seq2SeqSettings) -> TokenBatchOrder:
    """Return the order that assigns pairs to steps."""
    return TokenBatchOrder(pairs.lengths, settings.tokens_per_batch, settings.seed)


def decide_steps(
    job: Job[PairBatch],
    order: TokenBatchOrder,
    settings: Seq2SeqSettings,
    machine: Machine,
    estimate_evaluation_seconds: Callable[[], float],
) -> int:
    """Return the number of steps, at least 1; a budget in minutes covers all but reading the data.

    Args:
        job: the training job.
        order: the order of its pairs.
        settings: the settings, with the budget.
        machine: the device to compute on.
        estimate_evaluation_seconds: estimates the seconds that the final evaluation will take.
    """
    if settings.epochs is not None:
        return count_epoch_steps(order, settings.epochs)
    if settings.steps is not None or settings.tokens is not None:
        return budget.count_steps(job, settings, machine)
    announce("measuring a few steps to convert the minutes to steps")
    end = time.monotonic() + 60.0 * (settings.minutes or DEFAULT_MINUTES)
    pace = budget.measure_pace(job, settings, machine)
    evaluation_seconds = estimate_evaluation_seconds()
    seconds = max(1.0, end - time.monotonic() - evaluation_seconds)
    limited = settings.model_copy(update={"minutes": seconds / 60.0})
    # `count_steps` assumes the loop's default number of evaluations; scale their cost to ours.
    share = NUM_EVALUATIONS / USUAL_EVALUATIONS if settings.eval_every is None else 1.0
    frequent = replace(pace, evaluation_seconds=share * pace.evaluation_seconds)
    num_steps = budget.count_steps(job, limited, machine, frequent)
    if settings.minutes is None:
        num_steps = limit_epochs(order, num_steps)
    tell_share(pace, settings, num_steps, evaluation_seconds)
    return num_steps


def tell_share(
    pace: StepPace, settings: Seq2SeqSettings, num_steps: int, evaluation_seconds: float
) -> None:
    """Warn if evaluation takes more of the run's time than training, and say what to do."""
    minutes = settings.minutes or DEFAULT_MINUTES
    if evaluation_seconds > 60.0 * minutes / 2:
        announce(
            f"generating all held-out texts at the end takes about {evaluation_seconds / 60:,.1f}"
            f" minutes, and the budget is {minutes:g}; hold out fewer pairs (--dev with fewer, or a"
            " smaller --held-out) or give a larger --minutes"
        )
        return
    learning = num_steps * pace.step_seconds
    paced = choose_schedule(settings, num_steps)
    whole = budget.seconds_of_run(pace, paced, num_steps) + evaluation_seconds
    if learning < whole / 2:
        announce(
            f"held-out texts take about {1 - learning / whole:.0%} of {whole / 60:,.1f} minutes;"
            " fewer of them, or fewer --eval-pairs, leave more time for training"
        )


def count_epoch_steps(order: TokenBatchOrder, epochs: float) -> int:
    """Return the number of steps in some epochs, which may be fractional."""
    whole = int(epochs)
    part = round((epochs - whole) * order.steps_per_epoch(whole)) if epochs > whole else 0
    return max(1, order.first_step(whole) + part)


def limit_epochs(order: TokenBatchOrder, num_steps: int) -> int:
    """Limit the steps to `MOST_EPOCHS` epochs, planning only as many epochs as are needed."""
    for epoch in range(1, int(MOST_EPOCHS)):
        if order.first_step(epoch) >= num_steps:
            return num_steps
    return min(num_steps, count_epoch_steps(order, MOST_EPOCHS))


def count_epochs(order: TokenBatchOrder, num_steps: int) -> float:
    """Return the number of epochs, possibly fractional, in some steps."""
    epoch = order.epoch_of(num_steps)
    return epoch + (num_steps - order.first_step(epoch)) / order.steps_per_epoch(epoch)


def choose_schedule(settings: Seq2SeqSettings, num_steps: int) -> Seq2SeqSettings:
    """Return the settings with `eval_every` set."""
    interval = settings.eval_every or -(-num_steps // NUM_EVALUATIONS)
    return settings.model_copy(update={"eval_every": interval})


def list_averaged(settings: Seq2SeqSettings, num_steps: int, step: int) -> tuple[int, ...]:
    """List the steps to average if the run ended after `step`: the last evaluated ones.

    They depend only on settings that a resumed run can't change, so interruptions don't affect
    them. The list is empty if `average` is 1, which selects the best step.

    Args:
        settings: the settings, with `eval_every` set.
        num_steps: steps of the whole run.
        step: the newest step.
    """
    assert settings.eval_every is not None, "eval_every is set"
    if settings.average == 1:
        return ()
    interval = settings.eval_every
    newest = [*range(step - step % interval, 0, -interval)[: settings.average]]
    if step == num_steps and step % interval:
        newest = [step, *newest][: settings.average]
    return tuple(reversed(newest))
