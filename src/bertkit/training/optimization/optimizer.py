"""Builds AdamW or Muon, and saves and loads its state as named tensors.

Sources: `muon.py`; Loshchilov and Hutter 2017, "Decoupled Weight Decay Regularization".
"""

from collections.abc import Callable
from operator import itemgetter

import torch
from torch import Tensor, nn

from bertkit.base.errors import CheckpointError
from bertkit.training.job import keep_learning_rate
from bertkit.training.optimization.muon import NUM_PARTS, Muon
from bertkit.training.settings import OptimizationSettings

ADAMW_STATE, MUON_STATE = ("exp_avg", "exp_avg_sq", "step"), ("momentum",)
SCALE = "learning_rate_scale"  # our key in a parameter group, beside AdamW's own
BLOCKS = ".layers."  # in the names of the parameters of Transformer blocks
JOINED = {"query_key_value": 3}  # projections whose weight joins several matrices


def build_optimizer(
    model: nn.Module,
    settings: OptimizationSettings,
    learning_rate_scale: Callable[[str], float] = keep_learning_rate,
    muon_learning_rate: float | None = None,
) -> torch.optim.AdamW:
    """Build AdamW or Muon over the parameters that require a gradient.

    Weight decay applies to matrices and embeddings, which have two dimensions, but not to biases
    and layer norms, which have one.

    Args:
        model: the model to train.
        settings: learning rate, betas, epsilon and weight decay.
        learning_rate_scale: parameter name → factor of its learning rate. Parameters with equal
            factors share groups; `set_learning_rate` applies the factor.
        muon_learning_rate: peak learning rate of Muon, which then updates the matrices of the
            Transformer blocks; None for AdamW alone.
    """
    groups: dict[tuple[bool, int, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            scale, num_parts, is_vector = learning_rate_scale(name), 0, parameter.dim() <= 1
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
        f"{name}.{part}": optimizer.state[parameter][part].detach().cpu()
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
        optimizer.state[parameter] = {
            part: tensors[f"{name}.{part}"].to(parameter.device) for part in parts[parameter]
        }


def list_state(optimizer: torch.optim.Optimizer) -> dict[nn.Parameter, tuple[str, ...]]:
    """Return the names of the state tensors of each parameter."""
    return {
        parameter: MUON_STATE if group.get(NUM_PARTS) else ADAMW_STATE
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
