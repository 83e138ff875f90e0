"""Integrated gradients of a score along the path from one text's embeddings to another's.

Source: Sundararajan et al. 2017, "Axiomatic Attribution for Deep Networks", section 3.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.inference.engines.engine import resolve_layers
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.nn.packed_ids import PackedIds
from bertkit.nn.packing import PackedBatch


def follow_gradients(
    model: FineTunedBert,
    ends: tuple[PackedIds, PackedIds],
    score: Callable[[Tensor], Tensor],
    num_steps: int,
) -> npt.NDArray[np.float64]:
    """Return what each token adds to a score of the logits from one text to the other.

    The texts have tokens at the same places. The points of the path are those of Gauss and
    Legendre.
    """
    device = model.encoder.embeddings.word.weight.device
    with torch.inference_mode(False), torch.enable_grad():
        batches = [PackedBatch.of(ids).to(device) for ids in ends]
        start, end = (model.encoder.embeddings(batch).detach() for batch in batches)
        total = torch.zeros_like(end)
        for point, share in zip(*np.polynomial.legendre.leggauss(num_steps), strict=True):
            embedded = (start + (point + 1) / 2 * (end - start)).requires_grad_()
            value = score(score_embedded(model, embedded, batches[1]).double())
            (slope,) = torch.autograd.grad(value, embedded)
            total += share / 2 * slope
    added: npt.NDArray[np.float64] = (total * (end - start)).sum(dim=-1).double().cpu().numpy()
    return added


def score_embedded(
    model: FineTunedBert, embedded: Float[Tensor, "tokens hidden"], batch: PackedBatch
) -> Float[Tensor, "rows outputs"]:
    """Return a model's logits for embeddings."""
    states = list(model.encoder.hidden_states(batch, embedded))
    layers = resolve_layers(model.head_layers, len(states) - 1)
    return model.head_scores(torch.cat([states[layer] for layer in layers], dim=-1), batch)
