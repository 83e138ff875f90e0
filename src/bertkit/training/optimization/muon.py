"""Muon: matrices are updated by their momentum, made orthogonal; everything else by AdamW.

`torch.optim.Muon` iterates in bf16 on every device, which many processors only emulate, and would
treat the joined projection to queries, keys and values as one matrix.

Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks".
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

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
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient; the matrices' gradients are consumed."""
        assert closure is None, "the loop computes gradients itself"
        for group in self.param_groups:
            if group[NUM_PARTS]:
                self._update(group)
        super().step()  # skips parameters without a gradient

    def _update(self, group: dict[str, Any]) -> None:
        """Update a group's matrices; those of equal shapes are made orthogonal together."""
        by_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
        for parameter in group["params"]:
            if parameter.grad is None:
                continue
            direction = self._add_momentum(parameter)
            parts = zip(
                parameter.chunk(group[NUM_PARTS]), direction.chunk(group[NUM_PARTS]), strict=True
            )
            for matrix, change in parts:
                by_shape.setdefault(matrix.shape, []).append((matrix, change))
            parameter.grad = None
        for (num_rows, num_columns), pairs in by_shape.items():
            changes = orthogonalize(torch.stack([change for _, change in pairs]))
            rate = group["lr"] * max(1.0, num_rows / num_columns) ** 0.5
            for (matrix, _), change in zip(pairs, changes, strict=True):
                matrix.mul_(1.0 - group["lr"] * group["weight_decay"])
                matrix.add_(change, alpha=-rate)

    def _add_momentum(self, parameter: Tensor) -> Tensor:
        """Update a parameter's momentum, and return Nesterov's look ahead of it."""
        state, gradient = self.state[parameter], parameter.grad
        assert gradient is not None
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        momentum: Tensor = state["momentum"].lerp_(gradient, 1.0 - MOMENTUM)
        return gradient.lerp(momentum, MOMENTUM)


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
