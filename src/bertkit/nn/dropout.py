"""Dropout with cheap random numbers on a CPU.

There, PyTorch's dropout spends most of its time on one random number for each element. Here one
random 64-bit word serves eight elements: an element is kept when its byte reaches a threshold. The
rate is therefore rounded to a multiple of 1/256, and the scale is that of the rounded rate, so the
expectation is exact. The mask is stored as bytes of 0 and 1, which PyTorch multiplies with floats
three times as fast as Booleans. Other devices use PyTorch's dropout, which is fast enough there.
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
    """Zero elements at random from torch's default generator, and scale the others up.

    Args:
        values: a tensor of any shape.
        rate: probability of zero, at least 0 and below 1.
    """
    if rate == 0.0:
        return values
    if values.device.type != "cpu":
        return F.dropout(values, rate)
    threshold = min(round(rate * BYTE_VALUES), BYTE_VALUES - 1)
    kept = random_bytes(values.numel()).view(values.shape).ge_(threshold)
    scale = BYTE_VALUES / (BYTE_VALUES - threshold)
    dropped: Tensor = _Drop.apply(values, kept, scale)  # type: ignore[no-untyped-call]
    return dropped


def random_bytes(count: int) -> Tensor:
    """Draw uniform bytes (uint8) from torch's default CPU generator."""
    words = torch.empty((count + 7) // 8, dtype=torch.int64)
    return words.random_(-(2**63), None).view(torch.uint8)[:count]


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
