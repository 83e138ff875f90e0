"""Recurrent nets over a packed batch: each sequence is read by itself, without padding."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from bertkit.nn.head_layout import length_mask
from bertkit.nn.packing import PackedBatch


@dataclass(frozen=True, eq=False)
class Steps:
    """The first tokens of all sequences, then the second ones, and so on; longest sequences first.

    Attributes:
        order: the token that stands at each place.
        places: where each token stands.
        rows: the sequences, longest first.
        batch_sizes: sequences that have a token, step by step; on the host.
    """

    order: Int[Tensor, " tokens"]
    places: Int[Tensor, " tokens"]
    rows: Int[Tensor, " sequences"]
    batch_sizes: Int[Tensor, " steps"]

    @classmethod
    def of(
        cls, lengths: Sequence[int], device: torch.device, *, is_backwards: bool = False
    ) -> "Steps":
        """The steps of sequences.

        Args:
            lengths: of the sequences.
            device: of their tokens.
            is_backwards: whether the last tokens come first.
        """
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
    """The state of the last layer after each token.

    Args:
        net: of one direction, or of both, whose states stand side by side.
        tokens: of all sequences, end to end.
        lengths: of the sequences.
        is_backwards: whether a net of one direction reads each from its end.
    """
    steps = Steps.of(lengths, tokens.device, is_backwards=is_backwards)
    states, _ = net(PackedSequence(tokens.index_select(0, steps.order), steps.batch_sizes))
    in_place: Tensor = states.data.index_select(0, steps.places)
    return in_place


def join_ends(
    states: Float[Tensor, "tokens twice_hidden"], batch: PackedBatch
) -> Float[Tensor, "sequences twice_hidden"]:
    """A sequence as a whole: the forward half of its last token, the backward half of its first.

    Each of the two has read all of it.
    """
    half = states.shape[1] // 2
    return torch.cat([states[batch.last_tokens, :half], states[batch.first_tokens, half:]], dim=1)
