"""How many steps a run has, when it is evaluated, and after which steps weights are averaged."""

from dataclasses import replace

from bertkit.base.progress import announce
from bertkit.data.token_batches import TokenBatchOrder
from bertkit.recipes.seq2seq.settings import DEFAULT_MINUTES, MOST_EPOCHS, Seq2SeqSettings
from bertkit.recipes.seq2seq.token_pairs import PairBatch, TokenPairs
from bertkit.training import budget
from bertkit.training.job import Job, Machine
from bertkit.training.loop import NUM_EVALUATIONS as USUAL_EVALUATIONS

NUM_EVALUATIONS = 20


def order_pairs(pairs: TokenPairs, settings: Seq2SeqSettings) -> TokenBatchOrder:
    """Which pairs each step has."""
    return TokenBatchOrder(pairs.lengths, settings.tokens_per_batch, settings.seed)


def decide_steps(
    job: Job[PairBatch], order: TokenBatchOrder, settings: Seq2SeqSettings, machine: Machine
) -> int:
    """Steps of the whole run, at least 1; a budget in minutes is measured."""
    if settings.epochs is not None:
        return count_epoch_steps(order, settings.epochs)
    if settings.steps is not None or settings.tokens is not None:
        return budget.count_steps(job, settings, machine)
    announce("measuring a few steps, to make the minutes into steps")
    pace = budget.measure_pace(job, settings, machine)
    # Evaluations are counted as often as the loop has them by itself.
    share = NUM_EVALUATIONS / USUAL_EVALUATIONS if settings.eval_every is None else 1.0
    pace = replace(pace, evaluation_seconds=share * pace.evaluation_seconds)
    if settings.minutes is not None:
        return budget.count_steps(job, settings, machine, pace)
    limited = settings.model_copy(update={"minutes": DEFAULT_MINUTES})
    return limit_epochs(order, budget.count_steps(job, limited, machine, pace))


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


def choose_rhythm(settings: Seq2SeqSettings, num_steps: int) -> Seq2SeqSettings:
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
