"""AdamW and Muon, learning rates, optimizer state by name, and the mean of several checkpoints."""

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, distributed, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from bertkit.base.errors import CheckpointError
from bertkit.training.ranks import current_ranks
from bertkit.training.settings import OptimizationSettings


def average_weights(states: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of each tensor over the states, summed in float64.

    The states are consumed one at a time, so an iterator that reads checkpoints keeps at most two
    models in memory, beside the sums. Tensors that aren't floating-point must be equal in all
    states.

    Source: Vaswani et al. 2017, section 6.1, which averages the last five checkpoints.
    """
    sums: dict[str, Tensor] = {}
    kinds: dict[str, torch.dtype] = {}
    count = 0
    for count, state in enumerate(states, 1):
        if count == 1:
            kinds = {name: tensor.dtype for name, tensor in state.items()}
            sums = {
                name: tensor.double().clone() if tensor.is_floating_point() else tensor.clone()
                for name, tensor in state.items()
            }
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


COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of Jordan et al.: singular values end near 1
NUM_ITERATIONS = 5
MOMENTUM = 0.95
EPSILON = 1e-7
NUM_PARTS = "num_parts"  # our key in a parameter group, beside AdamW's own


class Muon(torch.optim.AdamW):
    """AdamW, except for parameter groups of matrices, which Muon updates.

    Such a group has a positive `num_parts`: the number of equal matrices that are joined, row by
    row, in each of its parameters. The state of a parameter is one tensor, `momentum`.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient; the matrices' gradients are consumed."""
        assert closure is None, "the loop computes gradients itself"
        for group in self.param_groups:
            if group[NUM_PARTS]:
                self._update(group)
        super().step()  # skips parameters without a gradient

    def _update(self, group: dict[str, Any]) -> None:
        """Update a group's matrices; those of equal shapes are made orthogonal together."""
        by_shape: dict[torch.Size, list[nn.Parameter]] = {}
        for parameter in group["params"]:
            if parameter.grad is not None:
                by_shape.setdefault(parameter.shape, []).append(parameter)
        for shape, parameters in by_shape.items():
            num_rows, num_columns = shape[0] // group[NUM_PARTS], shape[1]
            directions = [to_whole(self._add_momentum(each)) for each in parameters]
            joined = torch.stack(directions).view(-1, num_rows, num_columns)
            changes = share_work(orthogonalize, joined).view(-1, *shape)
            rate = group["lr"] * max(1.0, num_rows / num_columns) ** 0.5
            for parameter, change in zip(parameters, changes, strict=True):
                parameter.grad = None
                parameter.mul_(1.0 - group["lr"] * group["weight_decay"])
                parameter.add_(to_shard(change, parameter), alpha=-rate)

    def _add_momentum(self, parameter: Tensor) -> Tensor:
        """Update a parameter's momentum, and return Nesterov's look ahead of it."""
        state, gradient = self.state[parameter], parameter.grad
        assert gradient is not None
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        momentum: Tensor = state["momentum"].lerp_(gradient, 1.0 - MOMENTUM)
        return gradient.lerp(momentum, MOMENTUM)


def share_work(
    work: Callable[[Tensor], Tensor], matrices: Float[Tensor, "matrices rows columns"]
) -> Float[Tensor, "matrices rows columns"]:
    """Return what `work` makes of each matrix; every rank computes some of them.

    The results are summed with zeros, because gathering equal parts from all ranks would send more
    the more ranks there are than matrices.
    """
    ranks = current_ranks()
    if ranks.count == 1:
        return work(matrices)
    first, stop = (len(matrices) * (ranks.rank + end) // ranks.count for end in (0, 1))
    own = work(matrices[first:stop])
    found = own.new_zeros(matrices.shape)
    found[first:stop] = own
    distributed.all_reduce(found)
    return found


def to_whole(tensor: Tensor) -> Tensor:
    """Return a tensor that is divided among ranks as a whole; all of them must call this."""
    whole: Tensor = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return whole


def to_shard(whole: Tensor, like: Tensor) -> Tensor:
    """Return this rank's shard of a tensor that every rank has, divided like another tensor."""
    if not isinstance(like, DTensor):
        return whole
    return distribute_tensor(whole, like.device_mesh, like.placements, src_data_rank=None)


def orthogonalize(
    matrices: Float[Tensor, "matrices rows columns"],
) -> Float[Tensor, "matrices rows columns"]:
    """Return matrices with the same singular vectors, and singular values from about 0.7 to 1.2.

    Five Newton–Schulz iterations; their products have the precision of an enclosing autocast.
    """
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    found = matrices.mT if is_tall else matrices
    found = found / (found.norm(dim=(-2, -1), keepdim=True) + EPSILON)
    first, third, fifth = COEFFICIENTS
    for _ in range(NUM_ITERATIONS):
        square = found @ found.mT
        factor = torch.baddbmm(square, square, square, beta=third, alpha=fifth)
        found = torch.baddbmm(found, factor, found, beta=first)
    orthogonal: Tensor = found.mT if is_tall else found
    return orthogonal


ADAMW_STATE, MUON_STATE = ("exp_avg", "exp_avg_sq", "step"), ("momentum",)
SCALE = "learning_rate_scale"  # our key in a parameter group, beside AdamW's own
BLOCKS = ".layers."  # in the names of the parameters of Transformer blocks
JOINED = {"query_key_value": 3}  # projections whose weight joins several matrices


def build_optimizer(
    model: nn.Module,
    settings: OptimizationSettings,
    learning_rate_scales: Mapping[str, float] = MappingProxyType({}),
    muon_learning_rate: float | None = None,
) -> torch.optim.AdamW:
    """Build AdamW or Muon over the parameters that require a gradient.

    Weight decay applies to matrices and embeddings, which have two dimensions, but not to biases
    and layer norms, which have one.

    Args:
        learning_rate_scales: factors of the learning rate by parameter name; 1 for others.
            Parameters with equal factors share groups; `set_learning_rate` applies the factor.
        muon_learning_rate: peak learning rate of Muon, which then updates the matrices of the
            Transformer blocks; None for AdamW alone.
    """
    groups: dict[tuple[bool, int, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            scale, num_parts, is_vector = (
                learning_rate_scales.get(name, 1.0),
                0,
                parameter.dim() <= 1,
            )
            if muon_learning_rate is not None and BLOCKS in name and not is_vector:
                num_parts = JOINED.get(name.split(".")[-2], 1)
                scale *= muon_learning_rate / settings.learning_rate
            groups.setdefault((is_vector, num_parts, scale), []).append(parameter)
    kind = torch.optim.AdamW if muon_learning_rate is None else Muon
    return kind(
        [
            {
                "params": parameters,
                "weight_decay": 0.0 if is_vector else settings.weight_decay,
                SCALE: scale,
                NUM_PARTS: num_parts,
            }
            for (is_vector, num_parts, scale), parameters in sorted(
                groups.items(), key=itemgetter(0)
            )
        ],
        lr=settings.learning_rate,
        betas=(settings.beta1, settings.beta2),
        eps=settings.adam_epsilon,
        fused=True,
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """Set each group's learning rate to the given rate times the group's factor."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group[SCALE]


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Return the optimizer's state as tensors named `parameter.exp_avg`, `parameter.momentum`, ….

    A parameter that never had a gradient has no state; before the first step none has.
    """
    parts = list_state(optimizer)
    return {
        f"{name}.{part}": to_whole(optimizer.state[parameter][part].detach()).cpu()
        for name, parameter in model.named_parameters()
        if parameter in optimizer.state
        for part in parts[parameter]
    }


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]
) -> None:
    """Restore the state that `optimizer_tensors` returned; a checkpoint stores it by name."""
    parts = list_state(optimizer)
    known = {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter in parts and f"{name}.{parts[parameter][-1]}" in tensors
    }
    expected = {f"{name}.{part}" for name, each in known.items() for part in parts[each]}
    if tensors.keys() != expected:
        odd = ", ".join(sorted(tensors.keys() ^ expected)[:4])
        raise CheckpointError(f"the optimizer's state isn't that of this model: {odd}")
    for name, parameter in known.items():
        placed = {part: tensors[f"{name}.{part}"].to(parameter.device) for part in parts[parameter]}
        optimizer.state[parameter] = {
            part: to_shard(state, parameter) if state.shape == parameter.shape else state
            for part, state in placed.items()
        }


def list_state(optimizer: torch.optim.Optimizer) -> dict[nn.Parameter, tuple[str, ...]]:
    """Return the names of the state tensors of each parameter."""
    return {
        parameter: MUON_STATE if group.get(NUM_PARTS) else ADAMW_STATE
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
