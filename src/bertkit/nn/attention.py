"""Multi-head self-attention, and the paper's equation 1 (scaled dot-product attention).

`attend_spelled_out` is the equation, optionally causal. `SelfAttention` projects tokens to queries,
keys and values, and lets the batch attend: a packed batch within each of its sequences, a KV cache
from the newest tokens to all before them. `kernels` has faster ways.

Source: Vaswani et al. 2017, section 3.2.
"""

import math
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.nn.dropout import drop
from bertkit.nn.masks import BIDIRECTIONAL, CAUSAL, AttentionMask, within
from bertkit.nn.relative import RotaryPositions


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
        self,
        query_key_value: Float[Tensor, "tokens 3 heads features"],
        layer: "SelfAttention",
        bias: Float[Tensor, "heads longest longest"] | None = None,
    ) -> Float[Tensor, "tokens heads features"]:
        """Compute a layer's attention, for each token within its sequence.

        Args:
            bias: added to the scores of each sequence.
        """


class SelfAttention(nn.Module):
    """Multi-head self-attention within each sequence, bidirectional or causal.

    Args:
        num_heads: attention heads, each of hidden_size / num_heads features.
        dropout_rate: dropout on the attention weights.
        is_causal: whether a token attends only to itself and the tokens before it.
        window: the largest distance at which a token attends to another; None for any.
        rotary_base: the base of rotary position embeddings; None for none.
        has_bias: whether the linear layers have biases.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        dropout_rate: float,
        *,
        is_causal: bool = False,
        window: int | None = None,
        rotary_base: float | None = None,
        has_bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_heads, self.dropout_rate = num_heads, dropout_rate
        self.is_causal, self.window = is_causal, window
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size, bias=has_bias)
        self.rotary = None if rotary_base is None else RotaryPositions(rotary_base)
        self.output = nn.Linear(hidden_size, hidden_size, bias=has_bias)

    @property
    def mask(self) -> AttentionMask:
        """Which tokens of its sequence a token may attend to."""
        if self.window is not None:
            return within(self.window)
        return CAUSAL if self.is_causal else BIDIRECTIONAL

    def forward(
        self,
        tokens: Float[Tensor, "tokens hidden"],
        batch: TokenBatch,
        kept: Int[Tensor, " rows"] | None = None,
        bias: Float[Tensor, "heads longest longest"] | None = None,
    ) -> Float[Tensor, "rows hidden"]:
        """Attend, then concatenate and project the heads of all tokens, or only of `kept`.

        Attention itself is always computed for all tokens; `kept` saves only the projection.

        Args:
            bias: added to the scores of each sequence, from its first token.
        """
        heads: Tensor = self.query_key_value(tokens).view(len(tokens), 3, self.num_heads, -1)
        if self.rotary is not None:
            heads = self.rotary(heads, batch.position_ids)
        context = batch.attend(heads, self, bias)
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
    bias: Float[Tensor, "_ length others"] | None = None,
) -> Float[Tensor, "batch heads length features"]:
    """Compute equation 1 of the paper line by line, with dropout on the attention weights."""
    scores = score_keys(query, key)
    if bias is not None:
        scores = scores + hide(bias, mask)
    elif mask is not None:
        scores += hide(scores.new_zeros(1, 1, len(mask[0])), mask)
    if is_causal:
        scores += scores.new_full(scores.shape[-2:], -math.inf).triu_(1)  # what follows a token
    weights = drop(scores.softmax(dim=-1), dropout_rate)
    return weights @ value


def hide(
    bias: Float[Tensor, "_ _ others"], mask: Bool[Tensor, "batch others"] | None
) -> Float[Tensor, "_ _ _ others"]:
    """Return what is added to scores: the bias, and at padding the lowest number.

    The lowest instead of minus infinity, because a row of padding may see nothing else.
    """
    if mask is None:
        return bias[None]
    return bias[None].masked_fill(~mask[:, None, None, :], torch.finfo(bias.dtype).min / 2)


def score_keys(
    query: Float[Tensor, "*heads length features"], key: Float[Tensor, "*heads others features"]
) -> Float[Tensor, "*heads length others"]:
    """Return Q Kᵀ / √d_k: a row for each query, a column for each key."""
    return (query / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)
