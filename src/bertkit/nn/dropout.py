"""Dropout whose random numbers are bytes on a CPU.

Source: Srivastava et al. 2014, "Dropout".
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor, nn

BYTE_VALUES = 256


class Dropout(nn.Module):
    """Zero each element with probability `rate` while training, and scale the others up.

    Source: Srivastava et al. 2014, "Dropout".
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, values: Float[Tensor, " *shape"]) -> Float[Tensor, " *shape"]:
        """Apply dropout in training mode; return the values unchanged in evaluation mode."""
        return drop(values, self.rate) if self.training else values

    def extra_repr(self) -> str:
        """Return the rate, for `print(model)`."""
        return f"rate={self.rate}"


def drop(values: Float[Tensor, " *shape"], rate: float) -> Float[Tensor, " *shape"]:
    """Zero elements at random from torch's default generator, and scale the others up."""
    if rate == 0.0:
        return values
    if values.device.type != "cpu":
        return F.dropout(values, rate)
    threshold = min(round(rate * BYTE_VALUES), BYTE_VALUES - 1)
    words = torch.empty((values.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    kept = words.view(torch.uint8)[: values.numel()].view(values.shape).ge_(threshold)
    scale = BYTE_VALUES / (BYTE_VALUES - threshold)
    dropped: Tensor = _Drop.apply(values, kept, scale)  # type: ignore[no-untyped-call]
    return dropped


class _Drop(torch.autograd.Function):
    """Computes values × kept × scale, saving one byte per element for the backward pass."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        values: Float[Tensor, " *shape"],
        kept: UInt8[Tensor, " *shape"],
        scale: float,
    ) -> Float[Tensor, " *shape"]:
        """Zero the dropped elements, and scale the others."""
        ctx.save_for_backward(kept)
        ctx.scale = scale  # type: ignore[attr-defined]
        return (values * kept).mul_(scale)

    @staticmethod
    def backward(
        ctx: torch.autograd.function.FunctionCtx, gradient: Float[Tensor, " *shape"]
    ) -> tuple[Float[Tensor, " *shape"], None, None]:
        """Return the gradient of the kept elements, scaled."""
        (kept,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return (gradient * kept).mul_(ctx.scale), None, None  # type: ignore[attr-defined]
