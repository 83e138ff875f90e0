"""Vectors of a large batch in the memory of a part of it: cached gradients.

The loss needs the vectors of a whole batch, and each vector needs only its own text. So each part
is computed without keeping what its backward pass needs, and once more when the gradient of its
vectors is known, with the same dropout. Gradients are those of the whole batch.

Source: Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup".
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from bertkit.models.bert.config import BertConfig
from bertkit.nn.packing import PackedBatch, take_sequences

# Hidden numbers of all layers that a part may keep, by the kind of device: 8,192 tokens of a model
# with 6 layers of 384 features, about 1.5 GB in float32; eight times that on a GPU.
MAX_FEATURES = {"cpu": 8192 * 6 * 384, "cuda": 8 * 8192 * 6 * 384}

Compute = Callable[[PackedBatch], Float[Tensor, "sequences dimension"]]


def count_parts(config: BertConfig, batch: PackedBatch) -> int:
    """Return in how many parts a batch is computed by default; 1 if it is small enough."""
    num_features = batch.num_tokens * config.num_hidden_layers * config.hidden_size
    kind = batch.input_ids.device.type
    return -(-num_features // MAX_FEATURES.get(kind, MAX_FEATURES["cpu"]))


def compute_in_parts(
    compute: Compute, batch: PackedBatch, num_parts: int
) -> Float[Tensor, "sequences dimension"]:
    """Return the vectors of all sequences, computed in parts, each again in the backward pass."""
    if num_parts <= 1:
        return compute(batch)
    parts = divide_by_length(batch.lengths, num_parts)
    vectors = [
        checkpoint(compute, take_sequences(batch, part), use_reentrant=False) for part in parts
    ]
    places = torch.from_numpy(np.argsort(np.concatenate(parts)))
    return torch.cat(vectors)[places.to(batch.input_ids.device, non_blocking=True)]


def divide_by_length(lengths: Sequence[int], num_parts: int) -> list[list[int]]:
    """Divide sequences into parts of about as many tokens, those of similar lengths together.

    The longest come first, so that a lack of memory shows at once. No part is empty; there are
    fewer parts if there are fewer sequences.
    """
    order = np.argsort(-np.array(lengths), kind="stable")
    ends = np.cumsum(np.array(lengths)[order])
    borders = np.searchsorted(ends, ends[-1] * np.arange(1, num_parts) / num_parts) + 1
    places = sorted({0, *borders.tolist(), len(order)})
    return [order[start:stop].tolist() for start, stop in pairwise(places)]
