"""Linear layers whose weights are laid out once for all products to come.

A matrix product on a CPU first copies its weights into the order in which it reads them. For few
tokens that costs as much as the product itself, and it is the same copy each time; here it is made
once. The way to it is the one that PyTorch's compiler takes, oneDNN by two private operators, so
`can_prepare` says where they are, and whoever asks has a plain layer for elsewhere.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.nn.block import gelu_tanh

# What oneDNN computes along with the product, and what it calls it; others follow the product.
FUSED_ACTIVATIONS: dict[Callable[[Tensor], Tensor], tuple[str, str]] = {
    F.gelu: ("gelu", "none"),
    gelu_tanh: ("gelu", "tanh"),
}
CAPABILITIES = ("AVX2", "AVX512")
LAY_OUT, MULTIPLY = "_reorder_linear_weight", "_linear_pointwise"


def can_prepare(weight: Tensor) -> bool:
    """Whether layers of such weights can be prepared.

    They must be in float32 on an x86 CPU with AVX2 or more, and PyTorch must have oneDNN and its
    two operators.
    """
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.backends.cpu.get_cpu_capability() in CAPABILITIES
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and all(hasattr(torch.ops.mkldnn, name) for name in (LAY_OUT, MULTIPLY))
    )


class PreparedLinear:
    """What a linear layer computes, and an activation after it; for inference alone.

    It holds a copy of the weights and doesn't see what becomes of the layer later.

    Args:
        linear: its weights must pass `can_prepare`.
        activation: one of `ACTIVATIONS` in `bertkit.nn.block`, or None.
    """

    def __init__(
        self, linear: nn.Linear, activation: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        weight = linear.weight.detach()
        self._weight: Tensor = getattr(torch.ops.mkldnn, LAY_OUT)(weight, None)
        self._multiply = getattr(torch.ops.mkldnn, MULTIPLY).default
        self._bias = linear.bias.detach().clone()
        self._fused = ("none", "none")
        if activation in FUSED_ACTIVATIONS:
            self._fused, activation = FUSED_ACTIVATIONS[activation], None
        self._activation = activation

    def __call__(self, tokens: Float[Tensor, "tokens inputs"]) -> Float[Tensor, "tokens outputs"]:
        """A new tensor, which the caller may write into."""
        name, algorithm = self._fused
        outputs: Tensor = self._multiply(tokens, self._weight, self._bias, name, [], algorithm)
        return outputs if self._activation is None else self._activation(outputs)
