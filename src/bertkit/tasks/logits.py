"""Logits of any number of examples, computed in batches of similar length."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.nn.batching import plan_batches
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.batch import Encoded, TokenSequence, pack_sequences

Logits: TypeAlias = npt.NDArray[np.float32]
Compute = Callable[[PackedBatch], Float[Tensor, "rows ..."]]


def compute_logits(
    compute: Compute,
    encoded: Sequence[Encoded],
    *,
    row: Literal["sequence", "token"],
    tokens_per_batch: int,
) -> list[Logits]:
    """The rows of each example's sequences, in order.

    Args:
        compute: a model's scores.
        encoded: the examples.
        row: what has a row of scores.
        tokens_per_batch: about how many tokens are computed at a time.
    """
    sequences = [sequence for one in encoded for sequence in one.sequences]
    by_sequence = _compute_sequences(compute, sequences, row, tokens_per_batch)
    stops = list(accumulate(len(one.sequences) for one in encoded))
    starts = [0, *stops[:-1]]
    return [
        _join([by_sequence[index] for index in range(start, stop)])
        for start, stop in zip(starts, stops, strict=True)
    ]


@torch.inference_mode()
def _compute_sequences(
    compute: Compute,
    sequences: Sequence[TokenSequence],
    row: Literal["sequence", "token"],
    tokens_per_batch: int,
) -> dict[int, Logits]:
    """The rows of each sequence."""
    found: dict[int, Logits] = {}
    lengths = [len(sequence.ids) for sequence in sequences]
    for chosen in plan_batches(lengths, tokens_per_batch):
        batch = pack_sequences([sequences[index] for index in chosen])
        rows: npt.NDArray[Any] = compute(batch).float().cpu().numpy()
        sizes = batch.lengths if row == "token" else (1,) * len(chosen)
        parts = np.split(rows, list(accumulate(sizes))[:-1])
        found.update(zip(chosen, parts, strict=True))
    return found


def _join(parts: list[Logits]) -> Logits:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
