"""Follows the watched metric: which step was best, and when a run has gone on long enough.

Both follow from the run's state and the next value, so a resumed run comes to the same end.
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
    """Take an evaluation in; what was measured before the first step doesn't count.

    Args:
        watched: the metric.
        metrics: of the evaluation after `state.step` steps; `loss` among them.
        state: where the run stands.
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
    """Whether metrics are better than the best of a run so far.

    A value that isn't finite never is, and one that equals the best only by its loss, where the
    metric is watched so.

    Args:
        watched: the metric.
        metrics: with its value; `loss` among them.
        state: which knows the best.
    """
    value, best = metrics[watched.metric], state.best_metric
    if best is None or not math.isfinite(value):
        return math.isfinite(value)
    if value == best:
        loss = state.best_step_loss
        return watched.is_tie_by_loss and loss is not None and metrics["loss"] < loss
    return (value > best) == watched.is_higher_better


def tell_best(watched: Watched, state: RunState) -> dict[str, Any]:
    """The best value, as the log has it."""
    return {"metric": watched.metric, "best": state.best_metric, "best_step": state.best_step}


def describe_end(watched: Watched, state: RunState) -> str:
    """Say why a run ended early."""
    if state.best_step is None:
        course = "was no finite number"
    else:
        course = f"was not better than the {state.best_metric:.4f} of step {state.best_step:,}"
    return (
        f"step {state.step:,}: ended early, for {watched.metric} {course}"
        f" in {pluralize(state.num_not_better, 'evaluation')}"
    )
