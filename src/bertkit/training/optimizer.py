"""AdamW, and its state as named tensors.

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
SCALE = "learning_rate_scale"  # of a group, beside AdamW's own keys


def build_optimizer(
    model: nn.Module,
    settings: OptimizationSettings,
    learning_rate_scale: Callable[[str], float] = keep_learning_rate,
) -> torch.optim.AdamW:
    """AdamW over the parameters that need a gradient.

    Matrices have weight decay, biases and layer norms none: a parameter with one dimension is a
    bias or a norm; matrices and embeddings have two.

    Args:
        model: what is trained.
        settings: how.
        learning_rate_scale: name of a parameter → factor of its learning rate; parameters of the
            same factor share groups, and `set_learning_rate` holds to it.
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
    """Give each group the rate times its factor."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group[SCALE]


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimizer's state as `parameter.exp_avg` and so on.

    A parameter that never had a gradient has none, as all before the first step.
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
    """Put back what `optimizer_tensors` gave."""
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
