"""Tracks the watched metric: selects the best step and stops the run early.

Both depend only on the run's state and the next value, so a resumed run decides the same.
"""

import math
from collections.abc import Mapping
from typing import Any

from bertkit.base.wording import pluralize
from bertkit.training.job import Watched
from bertkit.training.run import RunState


def follow(
    watched: Watched, metrics: Mapping[str, float], state: RunState, num_steps: int
) -> RunState:
    """Return the state updated with an evaluation; one before the first step is ignored.

    Args:
        watched: the watched metric.
        metrics: metrics of the evaluation after `state.step` steps, including `loss`.
        state: the run's state.
        num_steps: steps of the whole run.
    """
    if state.step == 0:
        return state
    if is_better(watched, metrics, state):
        changes = {
            "best_metric": metrics[watched.metric],
            "best_step": state.step,
            "best_step_loss": metrics["loss"],
            "num_not_better": 0,
        }
        return state.model_copy(update=changes)
    num_not_better = state.num_not_better + 1
    is_enough = watched.patience is not None and num_not_better >= watched.patience
    return state.model_copy(
        update={
            "num_not_better": num_not_better,
            "has_ended_early": is_enough and state.step < num_steps,
        }
    )


def is_better(watched: Watched, metrics: Mapping[str, float], state: RunState) -> bool:
    """Whether metrics are better than the run's best so far.

    A value that isn't finite never is. An equal value is better only if `is_tie_by_loss` is set
    and its loss is lower.

    Args:
        watched: the watched metric.
        metrics: the evaluation's metrics, including `loss`.
        state: the run's state, with the best value.
    """
    value, best = metrics[watched.metric], state.best_metric
    if best is None or not math.isfinite(value):
        return math.isfinite(value)
    if value == best:
        loss = state.best_step_loss
        return watched.is_tie_by_loss and loss is not None and metrics["loss"] < loss
    return (value > best) == watched.is_higher_better


def tell_best(watched: Watched, state: RunState) -> dict[str, Any]:
    """Return the best value and its step, as fields of a log row."""
    return {"metric": watched.metric, "best": state.best_metric, "best_step": state.best_step}


def describe_end(watched: Watched, state: RunState) -> str:
    """Describe why a run ended early."""
    if state.best_step is None:
        history = "was not finite"
    else:
        history = f"was not better than the {state.best_metric:.4f} of step {state.best_step:,}"
    return (
        f"step {state.step:,}: ended early, for {watched.metric} {history}"
        f" in {pluralize(state.num_not_better, 'evaluation')}"
    )
