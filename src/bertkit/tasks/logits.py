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

MAX_SCORES = 1 << 23  # logits in memory at a time: 32 MB, a few times that while decoding

Logits: TypeAlias = npt.NDArray[np.float32]
Compute = Callable[[PackedBatch], Float[Tensor, "rows ..."]]


def compute_logits(
    compute: Compute,
    encoded: Sequence[Encoded],
    *,
    row: Literal["sequence", "token"],
    tokens_per_batch: int,
) -> list[Logits]:
    """Compute the logits of each example, `[rows, ...]`, the rows of its sequences in order.

    Args:
        compute: the model's forward pass, from a packed batch to logits.
        encoded: the examples.
        row: whether each sequence or each token has a row of logits.
        tokens_per_batch: approximate number of tokens in a batch.
    """
    sequences = [sequence for one in encoded for sequence in one.sequences]
    by_sequence = _compute_sequences(compute, sequences, row, tokens_per_batch)
    stops = list(accumulate(len(one.sequences) for one in encoded))
    starts = [0, *stops[:-1]]
    return [
        _join([by_sequence[index] for index in range(start, stop)])
        for start, stop in zip(starts, stops, strict=True)
    ]


def cut_by_scores(
    encoded: Sequence[Encoded],
    num_labels: int,
    *,
    row: Literal["sequence", "token"],
    most: int | None = None,
) -> list[range]:
    """Split examples into ranges whose logits fit in memory; one range unless labels are very many.

    Args:
        encoded: the examples.
        num_labels: logits per row; 0 if labels have no names, and all examples are one range.
        row: whether each sequence or each token has a row of logits.
        most: logits per range; a single example may have more. By default 8,388,608.
    """
    most = MAX_SCORES if most is None else most
    parts, start, size = [], 0, 0
    for number, one in enumerate(encoded):
        added = num_labels * (one.num_tokens if row == "token" else len(one.sequences))
        if number > start and size + added > most:
            parts.append(range(start, number))
            start, size = number, 0
        size += added
    return [*parts, range(start, len(encoded))]


@torch.inference_mode()
def _compute_sequences(
    compute: Compute,
    sequences: Sequence[TokenSequence],
    row: Literal["sequence", "token"],
    tokens_per_batch: int,
) -> dict[int, Logits]:
    """Compute the logits of each sequence, by its index."""
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
