"""Follows the watched metric: which step was best, and when a run has gone on long enough.

Both follow from the run's state and the next value, so a resumed run comes to the same end.
"""

import math
from typing import Any

from bertkit.training.job import Watched
from bertkit.training.run import RunState


def follow(watched: Watched, value: float, state: RunState, num_steps: int) -> RunState:
    """Take an evaluation's value in.

    A value that isn't finite is never the best, nor is one that only equals the best. What was
    measured before the first step doesn't count.

    Args:
        watched: the metric.
        value: of the evaluation after `state.step` steps.
        state: where the run stands.
        num_steps: steps of the whole run.
    """
    if state.step == 0:
        return state
    if _is_better(watched, value, state.best_metric):
        changes = {"best_metric": value, "best_step": state.step, "num_not_better": 0}
        return state.model_copy(update=changes)
    num_not_better = state.num_not_better + 1
    is_enough = watched.patience is not None and num_not_better >= watched.patience
    return state.model_copy(
        update={
            "num_not_better": num_not_better,
            "has_ended_early": is_enough and state.step < num_steps,
        }
    )


def _is_better(watched: Watched, value: float, best: float | None) -> bool:
    if not math.isfinite(value):
        return False
    return best is None or (value > best if watched.is_higher_better else value < best)


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
        f" in {state.num_not_better:,} evaluations"
    )
