"""Builds AdamW, and saves and loads its state as named tensors.

Source: Loshchilov and Hutter 2017, "Decoupled Weight Decay Regularization".
"""

from collections.abc import Callable
from operator import itemgetter

import torch
from torch import Tensor, nn

from bertkit.base.errors import CheckpointError
from bertkit.training.job import keep_learning_rate
from bertkit.training.settings import OptimizationSettings

STATE_TENSORS = ("exp_avg", "exp_avg_sq", "step")
SCALE = "learning_rate_scale"  # our key in a parameter group, beside AdamW's own


def build_optimizer(
    model: nn.Module,
    settings: OptimizationSettings,
    learning_rate_scale: Callable[[str], float] = keep_learning_rate,
) -> torch.optim.AdamW:
    """Build AdamW over the parameters that require a gradient.

    Weight decay applies to matrices and embeddings, which have two dimensions, but not to biases
    and layer norms, which have one.

    Args:
        model: the model to train.
        settings: learning rate, betas, epsilon and weight decay.
        learning_rate_scale: parameter name → factor of its learning rate. Parameters with equal
            factors share groups; `set_learning_rate` applies the factor.
    """
    groups: dict[tuple[bool, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            key = (parameter.dim() <= 1, learning_rate_scale(name))
            groups.setdefault(key, []).append(parameter)
    return torch.optim.AdamW(
        [
            {
                "params": parameters,
                "weight_decay": 0.0 if is_vector else settings.weight_decay,
                SCALE: scale,
            }
            for (is_vector, scale), parameters in sorted(groups.items(), key=itemgetter(0))
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
    """Return the optimizer's state as tensors named `parameter.exp_avg` and so on.

    A parameter that never had a gradient has no state; before the first step none has.
    """
    return {
        f"{name}.{part}": optimizer.state[parameter][part].detach().cpu()
        for name, parameter in model.named_parameters()
        for part in STATE_TENSORS
        if parameter in optimizer.state
    }


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]
) -> None:
    """Restore the state that `optimizer_tensors` returned; a checkpoint stores it by name."""
    trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
    known = {name: each for name, each in trained.items() if f"{name}.step" in tensors}
    expected = {f"{name}.{part}" for name in known for part in STATE_TENSORS}
    if tensors.keys() != expected:
        odd = ", ".join(sorted(tensors.keys() ^ expected)[:4])
        raise CheckpointError(f"the optimizer's state isn't that of this model: {odd}")
    for name, parameter in known.items():
        optimizer.state[parameter] = {
            part: tensors[f"{name}.{part}"].to(parameter.device) for part in STATE_TENSORS
        }
