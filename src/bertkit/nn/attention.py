"""Multi-head self-attention, and the paper's equation 1 (scaled dot-product attention).

`attend_spelled_out` is the equation, optionally causal. `SelfAttention` projects tokens to queries,
keys and values, and lets the batch attend: a packed batch within each of its sequences, a KV cache
from the newest tokens to all before them. `attend_fused` and `attend_flash` are faster.

Source: Vaswani et al. 2017, section 3.2.
"""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.nn.dropout import drop
from bertkit.nn.masks import BIDIRECTIONAL, CAUSAL, AttentionMask


@runtime_checkable  # tests check annotations at run time
class TokenBatch(Protocol):
    """The input of an encoder or decoder: a `PackedBatch`, or a `KVCache` when generating."""

    @property
    def input_ids(self) -> Int[Tensor, " tokens"]:
        """Token ids."""

    @property
    def token_type_ids(self) -> Int[Tensor, " tokens"]:
        """The segment of each token."""

    @property
    def position_ids(self) -> Int[Tensor, " tokens"]:
        """The position of each token in its sequence."""

    def attend(
        self, query_key_value: Float[Tensor, "tokens 3 heads features"], layer: "SelfAttention"
    ) -> Float[Tensor, "tokens heads features"]:
        """Compute a layer's attention, for each token within its sequence."""


class SelfAttention(nn.Module):
    """Multi-head self-attention within each sequence, bidirectional or causal.

    Args:
        num_heads: attention heads, each of hidden_size / num_heads features.
        dropout_rate: dropout on the attention weights.
        is_causal: whether a token attends only to itself and the tokens before it.
    """

    def __init__(
        self, hidden_size: int, num_heads: int, dropout_rate: float, *, is_causal: bool = False
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.dropout_rate = dropout_rate
        self.is_causal = is_causal
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
        self.output = nn.Linear(hidden_size, hidden_size)

    @property
    def mask(self) -> AttentionMask:
        """Which tokens of its sequence a token may attend to."""
        return CAUSAL if self.is_causal else BIDIRECTIONAL

    def forward(
        self,
        tokens: Float[Tensor, "tokens hidden"],
        batch: TokenBatch,
        kept: Int[Tensor, " rows"] | None = None,
    ) -> Float[Tensor, "rows hidden"]:
        """Attend, then concatenate and project the heads of all tokens, or only of `kept`.

        Attention itself is always computed for all tokens; `kept` saves only the projection.
        """
        heads: Tensor = self.query_key_value(tokens).view(len(tokens), 3, self.num_heads, -1)
        context = batch.attend(heads, self)
        rows = context if kept is None else context[kept]
        mixed: Tensor = self.output(rows.flatten(start_dim=1))
        return mixed


def attend_spelled_out(
    query: Float[Tensor, "batch heads length features"],
    key: Float[Tensor, "batch heads others features"],
    value: Float[Tensor, "batch heads others features"],
    mask: Bool[Tensor, "batch others"] | None,
    dropout_rate: float,
    *,
    is_causal: bool = False,
) -> Float[Tensor, "batch heads length features"]:
    """Compute equation 1 of the paper line by line, with dropout on the attention weights."""
    scores = score_keys(query, key)
    if mask is not None:
        bias = torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, -math.inf)
        scores += bias[:, None, None, :]
    if is_causal:
        scores += scores.new_full(scores.shape[-2:], -math.inf).triu_(1)  # what follows a token
    weights = drop(scores.softmax(dim=-1), dropout_rate)
    return weights @ value


def score_keys(
    query: Float[Tensor, "*heads length features"], key: Float[Tensor, "*heads others features"]
) -> Float[Tensor, "*heads length others"]:
    """Return Q Kᵀ / √d_k: a row for each query, a column for each key."""
    return (query / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)


SHORT = 64  # longest row for which PyTorch's fused forward and backward are slower on a CPU


def attend_rows(
    query: Float[Tensor, "batch heads length features"],
    key: Float[Tensor, "batch heads others features"],
    value: Float[Tensor, "batch heads others features"],
    mask: Bool[Tensor, "batch others"] | None,
    dropout_rate: float,
    *,
    is_causal: bool = False,
) -> Float[Tensor, "batch heads length features"]:
    """Attend within padded rows.

    Uses `attend_spelled_out` with dropout on the attention weights, and for training on short
    sequences on a CPU; otherwise `attend_fused`.
    """
    is_short = query.is_cpu and max(query.shape[2], key.shape[2]) <= SHORT
    if dropout_rate > 0.0 or (is_short and query.requires_grad):
        return attend_spelled_out(query, key, value, mask, dropout_rate, is_causal=is_causal)
    return attend_fused(query, key, value, mask, is_causal=is_causal)


def attend_fused(
    query: Float[Tensor, "batch heads length features"],
    key: Float[Tensor, "batch heads others features"],
    value: Float[Tensor, "batch heads others features"],
    mask: Bool[Tensor, "batch others"] | None,
    *,
    is_causal: bool = False,
) -> Float[Tensor, "batch heads length features"]:
    """Attend with PyTorch's fused kernel.

    Args:
        mask: True for keys that may be attended to; None if there is no padding.
        is_causal: whether a token attends only to itself and those before it; needs mask=None.
    """
    attended = None if mask is None else mask[:, None, None, :]
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=attended, is_causal=is_causal
    )


def attend_runs(
    query_key_value: Float[Tensor, "tokens 3 heads features"],
    lengths: Sequence[int],
    *,
    is_causal: bool = False,
) -> Float[Tensor, "tokens heads features"]:
    """Attend within runs of adjacent sequences of equal length, without padding, mask or copies.

    A batch sorted by length has few runs. Any other order gives the same result, only slower.
    """
    contexts, start = [], 0
    for length, run in groupby(lengths):
        stop = start + length * len(list(run))
        rows = query_key_value[start:stop].view(-1, length, *query_key_value.shape[1:])
        query, key, value = rows.permute(2, 0, 3, 1, 4)
        context = attend_fused(query, key, value, None, is_causal=is_causal)
        contexts.append(context.transpose(1, 2).flatten(0, 1))
        start = stop
    return contexts[0] if len(contexts) == 1 else torch.cat(contexts)


def uses_flash(values: Float[Tensor, "*tokens heads features"]) -> bool:
    """Whether `attend_flash` supports these values; its kernel doesn't pad heads."""
    is_half = values.is_cuda and values.dtype in (torch.float16, torch.bfloat16)
    num_features = values.shape[-1]
    fits = is_half and num_features % 8 == 0 and num_features <= 256
    return fits and torch.cuda.get_device_capability(values.device) >= (8, 0)  # Ampere


def attend_flash(
    query: Float[Tensor, "tokens heads features"],
    key: Float[Tensor, "others heads features"],
    value: Float[Tensor, "others heads features"],
    offsets: tuple[Int[Tensor, " ends"], Int[Tensor, " ends"]],
    longest: tuple[int, int],
    *,
    is_causal: bool = False,
) -> Float[Tensor, "tokens heads features"]:
    """Attend with variable-length flash attention (CUDA, half precision).

    Args:
        offsets: where sequences start, and the last one ends, among queries and among keys.
        longest: length of the longest sequence of queries, and of keys.
    """
    from torch.nn.attention.varlen import varlen_attn

    window = (-1, 0) if is_causal else (-1, -1)
    context = varlen_attn(query, key, value, *offsets, *longest, window_size=window)
    assert isinstance(context, Tensor)  # it is a pair only if the log-sum-exp is requested
    return context
