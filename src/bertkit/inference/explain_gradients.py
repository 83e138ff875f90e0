"""Integrated gradients: how much each token adds to a value, for texts of many words.

Source: Sundararajan et al. 2017, "Axiomatic Attribution for Deep Networks", section 3; the path is
that of the embeddings, from those of [PAD] in the place of all words, and its points are those of
Gauss and Legendre.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.inference.engines.choice import find_device
from bertkit.inference.engines.engine import resolve_layers
from bertkit.inference.explain_targets import Target
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.batch import TokenSequence, pack_sequences

NUM_STEPS = 32
GRADIENT_COST = 3 * NUM_STEPS  # in passes: backward costs two


def attribute(
    model: FineTunedBert,
    sequences: Sequence[TokenSequence],
    baseline: Sequence[TokenSequence],
    target: Target,
    tokens_per_batch: int,
) -> npt.NDArray[np.float64]:
    """Return what each token of the sequences of one input adds to the value of a target.

    The sum is the value less that of `baseline`, which has other tokens in some places.
    """
    points, shares = np.polynomial.legendre.leggauss(NUM_STEPS)
    once = pack_sequences(sequences).to(find_device(model))
    with torch.inference_mode(False), torch.no_grad():
        end = model.encoder.embeddings(once)
        start = model.encoder.embeddings(pack_sequences(baseline).to(end.device))
    total = torch.zeros_like(end)
    at_once = max(1, tokens_per_batch // once.num_tokens)
    for first in range(0, NUM_STEPS, at_once):
        steps = torch.from_numpy(points[first : first + at_once] / 2 + 0.5).to(end)
        weights = torch.from_numpy(shares[first : first + at_once] / 2).to(end)
        slopes = _find_slopes(model, list(sequences) * len(steps), start, end, steps, target)
        total += (weights[:, None, None] * slopes).sum(dim=0)
    added: npt.NDArray[np.float64] = (total * (end - start)).sum(dim=-1).double().cpu().numpy()
    return added


def _find_slopes(
    model: FineTunedBert,
    repeated: list[TokenSequence],
    start: Float[Tensor, "tokens hidden"],
    end: Float[Tensor, "tokens hidden"],
    steps: Float[Tensor, " steps"],
    target: Target,
) -> Float[Tensor, "steps tokens hidden"]:
    """Return the gradient of a target's value at points between two embeddings."""
    with torch.inference_mode(False), torch.enable_grad():
        batch = pack_sequences(repeated).to(end.device)
        points = (start + steps[:, None, None] * (end - start)).requires_grad_()
        rows = score_embedded(model, points.flatten(0, 1), batch)
        logits = rows.view(len(steps), len(rows) // len(steps), -1)
        values = target.find_value(target.score(logits))
        (slopes,) = torch.autograd.grad(values.sum(), points)
    return slopes


def score_embedded(
    model: FineTunedBert, embedded: Float[Tensor, "tokens hidden"], batch: PackedBatch
) -> Float[Tensor, "rows outputs"]:
    """Return a model's logits for embeddings."""
    states = [embedded]
    for layer in model.encoder.layers:
        states.append(layer(states[-1], batch))
    layers = resolve_layers(model.head_layers, len(states) - 1)
    return model.head_scores(torch.cat([states[layer] for layer in layers], dim=-1), batch)
