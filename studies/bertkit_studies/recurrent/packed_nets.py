"""Recurrent nets over packed batches: each sequence is read as if it were alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from bertkit.nn.head_blocks import length_mask
from bertkit.nn.packing import PackedBatch


@dataclass(frozen=True, eq=False)
class Steps:
    """Token order by time step, as in PyTorch's `PackedSequence`; longest sequences first."""

    order: Int[Tensor, " tokens"]  # the index of the token at each place
    places: Int[Tensor, " tokens"]  # the place of each token
    rows: Int[Tensor, " sequences"]  # indices of the sequences, longest first
    # number of sequences that have a token, for each step; on the host
    batch_sizes: Int[Tensor, " steps"]

    @classmethod
    def of(
        cls, lengths: Sequence[int], device: torch.device, *, is_backwards: bool = False
    ) -> "Steps":
        """Build the order for sequences of these lengths."""
        sizes = torch.tensor(lengths)
        rows = sizes.argsort(descending=True, stable=True)
        mask = length_mask(sizes[rows].tolist(), sizes.device).t()
        step, rank = mask.nonzero().unbind(dim=1)
        row = rows[rank]
        place = sizes[row] - 1 - step if is_backwards else step
        order = (sizes.cumsum(0) - sizes)[row] + place
        return cls(order.to(device), order.argsort().to(device), rows.to(device), mask.sum(dim=1))


def run_net(
    net: nn.LSTM | nn.GRU,
    tokens: Float[Tensor, "tokens features"],
    lengths: Sequence[int],
    *,
    is_backwards: bool = False,
) -> Float[Tensor, "tokens hidden"]:
    """Return the last layer's state after each token.

    A bidirectional net concatenates both states; `is_backwards` reads with a unidirectional one
    from the last token to the first.
    """
    steps = Steps.of(lengths, tokens.device, is_backwards=is_backwards)
    states, _ = net(PackedSequence(tokens.index_select(0, steps.order), steps.batch_sizes))
    in_place: Tensor = states.data.index_select(0, steps.places)
    return in_place


def join_ends(
    states: Float[Tensor, "tokens twice_hidden"], batch: PackedBatch
) -> Float[Tensor, "sequences twice_hidden"]:
    """Concatenate the forward state of a sequence's last token and the backward one of its first.

    Each of these has read the whole sequence.
    """
    half = states.shape[1] // 2
    return torch.cat([states[batch.last_tokens, :half], states[batch.first_tokens, half:]], dim=1)
