"""A bidirectional LSTM over packed sequences: each is read from both of its own ends."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence, unpack_sequence


def read_both_ways(
    lstm: nn.LSTM, tokens: Float[Tensor, "tokens features"], lengths: Sequence[int]
) -> Float[Tensor, "tokens twice_hidden"]:
    """What each token gives: the forward half first, then the backward half.

    Args:
        lstm: bidirectional.
        tokens: of all sequences, end to end.
        lengths: of the sequences.
    """
    parts = torch.split(tokens, list(lengths))
    packed = pack_sequence(list(parts), enforce_sorted=False)
    output, _ = lstm(packed)
    return torch.cat(unpack_sequence(output))


def join_ends(
    tokens: Float[Tensor, "tokens twice_hidden"], lengths: Sequence[int]
) -> Float[Tensor, "sequences twice_hidden"]:
    """A sequence as a whole: the forward half of its last token, the backward half of its first.

    Each of the two has read all of it.
    """
    half = tokens.shape[1] // 2
    stops = torch.tensor(lengths, device=tokens.device).cumsum(0)
    starts = stops - torch.tensor(lengths, device=tokens.device)
    return torch.cat([tokens[stops - 1, :half], tokens[starts, half:]], dim=1)
