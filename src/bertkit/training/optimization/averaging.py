"""Averages a model's weights over several checkpoints of a run.

Source: Vaswani et al. 2017, section 6.1, which averages the last five checkpoints.
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from bertkit.base.errors import CheckpointError


def average_weights(states: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of each tensor over the states, summed in float64.

    The states are consumed one at a time, so an iterator that reads checkpoints keeps at most two
    models in memory, beside the sums. Tensors that aren't floating-point have no mean; they must
    be equal in all states.

    Args:
        states: state dicts (tensors by name); at least one.

    Returns:
        Tensors with the same names, shapes and dtypes.
    """
    sums: dict[str, Tensor] = {}
    kinds: dict[str, torch.dtype] = {}
    count = 0
    for count, state in enumerate(states, 1):
        if count == 1:
            kinds = {name: tensor.dtype for name, tensor in state.items()}
            sums = {name: _widen(tensor).clone() for name, tensor in state.items()}
            continue
        _check_alike(sums, state)
        for name, tensor in state.items():
            if tensor.is_floating_point():
                sums[name] += tensor
            elif not torch.equal(sums[name], tensor):
                raise CheckpointError(
                    f"{name} isn't made of floating-point numbers and changed; it can't be averaged"
                )
    if not count:
        raise CheckpointError("there is no checkpoint to average")
    return {
        name: (total / count).to(kinds[name]) if total.is_floating_point() else total
        for name, total in sums.items()
    }


def _widen(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _check_alike(sums: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
    """Check that a state has the same tensor names and shapes as the states before it."""
    if strangers := sorted(sums.keys() ^ state.keys()):
        raise CheckpointError(
            f"the checkpoints are of different models: not all of them have {strangers[0]}"
        )
    for name, total in sums.items():
        if total.shape != state[name].shape:
            raise CheckpointError(
                f"the checkpoints are of different models: {name} has the shape {[*total.shape]} in"
                f" one and {[*state[name].shape]} in another"
            )
