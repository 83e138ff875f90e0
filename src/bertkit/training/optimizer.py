"""AdamW, and its state as named tensors.

Source: Loshchilov and Hutter 2017, "Decoupled Weight Decay Regularization".
"""

import torch
from torch import Tensor, nn

from bertkit.base.errors import CheckpointError
from bertkit.training.settings import LoopSettings

STATE_TENSORS = ("exp_avg", "exp_avg_sq", "step")


def build_optimizer(model: nn.Module, settings: LoopSettings) -> torch.optim.AdamW:
    """AdamW with weight decay on matrices and none on biases and layer norms.

    A parameter with one dimension is a bias or a norm; matrices and embeddings have two.
    """
    parameters = list(model.parameters())
    groups = [
        {
            "params": [parameter for parameter in parameters if parameter.dim() > 1],
            "weight_decay": settings.weight_decay,
        },
        {
            "params": [parameter for parameter in parameters if parameter.dim() <= 1],
            "weight_decay": 0.0,
        },
    ]
    return torch.optim.AdamW(
        groups,
        lr=settings.learning_rate,
        betas=(settings.beta1, settings.beta2),
        eps=settings.adam_epsilon,
        fused=True,
    )


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimiser's state as `parameter.exp_avg` and so on; empty before the first step."""
    return {
        f"{name}.{part}": optimizer.state[parameter][part].detach().cpu()
        for name, parameter in model.named_parameters()
        for part in STATE_TENSORS
        if parameter in optimizer.state
    }


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]
) -> None:
    """Put back what `optimizer_tensors` gave.

    Raises:
        CheckpointError: the tensors aren't those of this model.
    """
    parameters = dict(model.named_parameters())
    expected = {f"{name}.{part}" for name in parameters for part in STATE_TENSORS}
    if tensors and tensors.keys() != expected:
        odd = ", ".join(sorted(tensors.keys() ^ expected)[:4])
        raise CheckpointError(f"the optimiser's state isn't that of this model: {odd}")
    for name, parameter in parameters.items():
        if tensors:
            optimizer.state[parameter] = {
                part: tensors[f"{name}.{part}"].to(parameter.device) for part in STATE_TENSORS
            }
