"""Multi-head self-attention, and the paper's equation 1 (scaled dot-product attention).

`attend_spelled_out` is the equation, optionally causal. `SelfAttention` projects tokens to queries,
keys and values, and lets the batch attend: a packed batch within each of its sequences, a KV cache
from the newest tokens to all before them. `attention_kernels.py` computes the same result faster.

Source: Vaswani et al. 2017, section 3.2.
"""

import math
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.nn.dropout import drop


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
        hidden_size: features of a token; a multiple of `num_heads`.
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
        scores += causal_mask(scores)
    weights = drop(scores.softmax(dim=-1), dropout_rate)
    return weights @ value


def score_keys(
    query: Float[Tensor, "*heads length features"], key: Float[Tensor, "*heads others features"]
) -> Float[Tensor, "*heads length others"]:
    """Return Q Kᵀ / √d_k: a row for each query, a column for each key."""
    return (query / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)


def causal_mask(scores: Float[Tensor, "*heads length length"]) -> Float[Tensor, "length length"]:
    """Return the causal mask: minus infinity above the diagonal, 0 elsewhere."""
    return scores.new_full(scores.shape[-2:], -math.inf).triu_(1)
