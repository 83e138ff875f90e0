"""Plans the number of steps anew while a run trains, so that it ends in time on any machine.

The plan is part of the run's state, and changes only at evaluations and when the time is over. So a
step remains a function of seed, step and state, and a resumed run goes on with the same plan.
"""

from bertkit.training.run import RunState

CHECKPOINT_SHARE = 0.02  # of the time, reserved for checkpoints and other unmeasured work


def plan_steps(
    before: RunState, state: RunState, num_steps: int, deadline_seconds: float, steps_between: int
) -> int:
    """Return the number of steps of a run, after an evaluation, from the time that is left.

    Steps are assumed to take as long as those since the previous evaluation, and evaluations as
    long as this one. After the last of `num_steps` the run is over, also if time is left.

    Args:
        before: the state before the evaluation.
        num_steps: the number of steps as planned before.
        steps_between: number of steps between evaluations.
    """
    if not 0 < state.step < num_steps:
        return num_steps
    num_taken = state.step - (before.evaluated_step or 0)
    pace = (before.elapsed_seconds - before.evaluated_seconds) / num_taken
    evaluation = state.elapsed_seconds - before.elapsed_seconds
    left = (1.0 - CHECKPOINT_SHARE) * deadline_seconds - state.elapsed_seconds - evaluation
    return state.step + max(0, int(left / (pace + evaluation / steps_between)))
