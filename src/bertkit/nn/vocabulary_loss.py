"""Cross-entropy over a large vocabulary, a few positions at a time.

The logits of all words at all masked positions are the largest tensor of a step. On a CPU they are
computed, turned into their gradient in place, multiplied back and freed in chunks of positions,
while they are in the processor's cache. Without gradients, every device computes them in chunks.

Source: the idea is that of Wijmans et al. 2024, "Cut Your Losses in Large-Vocabulary Language
Models" (2411.09009).
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

POSITIONS_AT_A_TIME = 128
SCORED_AT_A_TIME = (
    4096  # without gradients; more would be gigabytes of logits with a large vocabulary
)


def vocabulary_loss(
    features: Float[Tensor, "positions hidden"],
    weight: Float[Tensor, "vocabulary hidden"],
    bias: Float[Tensor, " vocabulary"],
    labels: Int[Tensor, " positions"],
    smoothing: float = 0.0,
) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
    """Compute the cross-entropy of the labels, and count correct predictions.

    Args:
        smoothing: label smoothing: the share of the target probability that is spread evenly over
            all words (Szegedy et al. 2015, section 7).

    Returns:
        The sum of the cross-entropies, at least in float32, and the number of positions where the
        label scored highest. In training on a CPU, a tie with another word counts as correct.
    """
    needs_gradient = any(part.requires_grad for part in (features, weight, bias))
    if not (needs_gradient and torch.is_grad_enabled()):
        starts = range(0, max(1, len(labels)), SCORED_AT_A_TIME)
        chunks = [slice(start, start + SCORED_AT_A_TIME) for start in starts]
        scored = [
            _score_at_once(features[chunk], weight, bias, labels[chunk], smoothing)
            for chunk in chunks
        ]
        losses, hits = zip(*scored, strict=True)
        return torch.stack(losses).sum(), torch.stack(hits).sum()
    if features.device.type == "cpu":
        parts = map(at_least_float32, (features, weight, bias))
        loss, num_hits = _VocabularyLoss.apply(*parts, labels, smoothing)  # type: ignore[no-untyped-call]
        return loss, num_hits
    return _score_at_once(features, weight, bias, labels, smoothing)


def _score_at_once(
    features: Float[Tensor, "positions hidden"],
    weight: Float[Tensor, "vocabulary hidden"],
    bias: Float[Tensor, " vocabulary"],
    labels: Int[Tensor, " positions"],
    smoothing: float,
) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
    """Compute the same from all logits at once; arguments as in `vocabulary_loss`."""
    scores = at_least_float32(F.linear(features, weight, bias))
    num_hits = (scores.argmax(dim=1) == labels).sum()
    loss = F.cross_entropy(scores, labels, reduction="sum", label_smoothing=smoothing)
    return loss, num_hits


def at_least_float32(values: Float[Tensor, " *shape"]) -> Float[Tensor, " *shape"]:
    """Convert half precision to float32; return other types unchanged."""
    return values.float() if values.dtype.itemsize < 4 else values


class _VocabularyLoss(torch.autograd.Function):
    """Computes the gradients in the forward pass, while the logits are in memory."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        labels: Tensor,
        smoothing: float,
    ) -> tuple[Tensor, Tensor]:
        gradients = tuple(map(torch.zeros_like, (features, weight, bias)))
        for_features, for_weight, for_bias = gradients
        loss, num_hits = features.new_zeros(()), labels.new_zeros(())
        share = smoothing / len(weight)
        for start in range(0, len(labels), POSITIONS_AT_A_TIME):
            part = slice(start, start + POSITIONS_AT_A_TIME)
            right = labels[part, None]
            logarithms = torch.addmm(bias, features[part], weight.t()).log_softmax(dim=1)
            chosen = logarithms.gather(1, right)
            loss -= (1.0 - smoothing) * chosen.sum()
            if smoothing > 0.0:
                loss -= share * logarithms.sum()
            # Ties count as hits: breaking them by argmax, as elsewhere, takes a tenth of the time.
            num_hits += (chosen >= logarithms.amax(dim=1, keepdim=True)).sum()
            errors = logarithms.exp_()  # probabilities minus targets: the gradient
            if smoothing > 0.0:
                errors -= share
            errors.scatter_add_(1, right, errors.new_full(right.shape, smoothing - 1.0))
            for_features[part] = errors @ weight
            for_weight.addmm_(errors.t(), features[part])
            for_bias.add_(errors.sum(dim=0))
        ctx.mark_non_differentiable(num_hits)
        ctx.save_for_backward(*gradients)
        return loss, num_hits

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return *(saved * gradients[0] for saved in ctx.saved_tensors), None, None
