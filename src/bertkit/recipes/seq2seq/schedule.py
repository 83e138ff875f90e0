"""How many steps a run has, when it is evaluated, and after which steps weights are averaged."""

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
    """Which pairs each step has."""
    return TokenBatchOrder(pairs.lengths, settings.tokens_per_batch, settings.seed)


def decide_steps(
    job: Job[PairBatch],
    order: TokenBatchOrder,
    settings: Seq2SeqSettings,
    machine: Machine,
    measure_judging: Callable[[], float],
) -> int:
    """Steps of the whole run, at least 1; a budget in minutes pays for all but reading the data.

    Args:
        job: what to train.
        order: of its pairs.
        settings: with the budget.
        machine: where it computes.
        measure_judging: tells the seconds that it will take to judge the finished model.
    """
    if settings.epochs is not None:
        return count_epoch_steps(order, settings.epochs)
    if settings.steps is not None or settings.tokens is not None:
        return budget.count_steps(job, settings, machine)
    announce("measuring a few steps, to make the minutes into steps")
    end = time.monotonic() + 60.0 * (settings.minutes or DEFAULT_MINUTES)
    pace = budget.measure_pace(job, settings, machine)
    judging_seconds = measure_judging()
    seconds = max(1.0, end - time.monotonic() - judging_seconds)
    limited = settings.model_copy(update={"minutes": seconds / 60.0})
    # Evaluations are counted as often as the loop has them by itself.
    share = NUM_EVALUATIONS / USUAL_EVALUATIONS if settings.eval_every is None else 1.0
    frequent = replace(pace, evaluation_seconds=share * pace.evaluation_seconds)
    num_steps = budget.count_steps(job, limited, machine, frequent)
    if settings.minutes is None:
        num_steps = limit_epochs(order, num_steps)
    tell_share(pace, settings, num_steps, judging_seconds)
    return num_steps


def tell_share(
    pace: StepPace, settings: Seq2SeqSettings, num_steps: int, judging_seconds: float
) -> None:
    """Say where held-out texts take more of a run's time than learning, and what to do."""
    minutes = settings.minutes or DEFAULT_MINUTES
    if judging_seconds > 60.0 * minutes / 2:
        announce(
            f"writing all held-out texts at the end takes about {judging_seconds / 60:,.1f}"
            f" minutes, and the budget is {minutes:g}; hold out fewer pairs (--dev with fewer, or a"
            " smaller --held-out) or give a larger --minutes"
        )
        return
    learning = num_steps * pace.step_seconds
    paced = choose_schedule(settings, num_steps)
    whole = budget.seconds_of_run(pace, paced, num_steps) + judging_seconds
    if learning < whole / 2:
        announce(
            f"held-out texts take about {1 - learning / whole:.0%} of {whole / 60:,.1f} minutes;"
            " fewer of them, or fewer --eval-pairs, leave more for learning"
        )


def count_epoch_steps(order: TokenBatchOrder, epochs: float) -> int:
    """Steps in which all pairs are seen so often."""
    whole = int(epochs)
    part = round((epochs - whole) * order.steps_per_epoch(whole)) if epochs > whole else 0
    return max(1, order.first_step(whole) + part)


def limit_epochs(order: TokenBatchOrder, num_steps: int) -> int:
    """As many steps, but at most those of the most epochs; none is planned that isn't reached."""
    for epoch in range(1, int(MOST_EPOCHS)):
        if order.first_step(epoch) >= num_steps:
            return num_steps
    return min(num_steps, count_epoch_steps(order, MOST_EPOCHS))


def count_epochs(order: TokenBatchOrder, num_steps: int) -> float:
    """How often all pairs are seen in so many steps."""
    epoch = order.epoch_of(num_steps)
    return epoch + (num_steps - order.first_step(epoch)) / order.steps_per_epoch(epoch)


def choose_schedule(settings: Seq2SeqSettings, num_steps: int) -> Seq2SeqSettings:
    """The same with the steps between evaluations decided."""
    interval = settings.eval_every or -(-num_steps // NUM_EVALUATIONS)
    return settings.model_copy(update={"eval_every": interval})


def list_averaged(settings: Seq2SeqSettings, num_steps: int, step: int) -> tuple[int, ...]:
    """The steps whose weights would be averaged if a run ended after `step`: evaluations, the last.

    They depend alone on settings that stay as they are, so that it doesn't matter where the run
    was interrupted. There is none where the best step is to be the model.

    Args:
        settings: with a rhythm.
        num_steps: of the whole run.
        step: the newest.
    """
    assert settings.eval_every is not None, "the rhythm is chosen"
    if settings.average == 1:
        return ()
    interval = settings.eval_every
    newest = [*range(step - step % interval, 0, -interval)[: settings.average]]
    if step == num_steps and step % interval:
        newest = [step, *newest][: settings.average]
    return tuple(reversed(newest))
