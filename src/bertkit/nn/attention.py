"""Multi-head self-attention over a packed batch; each token attends within its own sequence.

`attend_spelled_out` is the paper's equation 1 (scaled dot-product attention), optionally causal.
All other functions compute the same result faster, and may be skipped at first reading:

- `attend`, for a packed batch, takes the first of three that applies:
  `attend_flash`: variable-length flash attention, on CUDA (Ampere or later) in half precision, for
  heads of 8, 16 … 256 features. It has no dropout on the attention weights; in training, dropout
  is applied to the attention output instead.
  `attend_runs`: on a CPU in inference mode, views of sequences of equal length.
  `attend_rows`: padded rows; on a CPU, only sequences of similar length are padded together.
- `attend_rows` uses PyTorch's fused kernel (`attend_fused`), or `attend_spelled_out` with dropout
  on the attention weights, and for training on short sequences on a CPU, where that is faster.
- `attend_growing`: when generating, the newest token of each row attends to the KV cache.

Source: Vaswani et al. 2017, section 3.2.
"""

import math
from itertools import groupby

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.nn.dropout import drop
from bertkit.nn.key_value_cache import KVCache
from bertkit.nn.packing import PackedBatch

SHORT = 64  # longest row for which PyTorch's fused forward and backward are slower on a CPU


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
        batch: PackedBatch | KVCache,
        kept: Int[Tensor, " rows"] | None = None,
    ) -> Float[Tensor, "rows hidden"]:
        """Attend, then concatenate and project the heads of all tokens, or only of `kept`.

        Attention itself is always computed for all tokens; `kept` saves only the projection.
        """
        heads: Tensor = self.query_key_value(tokens).view(len(tokens), 3, self.num_heads, -1)
        rate = self.dropout_rate if self.training else 0.0
        if isinstance(batch, KVCache):
            assert self.is_causal, "only what is read left to right can grow"
            context = attend_growing(heads, batch, self)
        else:
            context = attend(heads, batch, rate, is_causal=self.is_causal)
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
        barred = torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, -math.inf)
        scores += barred[:, None, None, :]
    if is_causal:
        scores += bar_later(scores)
    weights = drop(scores.softmax(dim=-1), dropout_rate)
    return weights @ value


def score_keys(
    query: Float[Tensor, "*heads length features"], key: Float[Tensor, "*heads others features"]
) -> Float[Tensor, "*heads length others"]:
    """Return Q Kᵀ / √d_k: a row for each query, a column for each key."""
    return (query / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)


def bar_later(scores: Float[Tensor, "*heads length length"]) -> Float[Tensor, "length length"]:
    """Return the causal mask: minus infinity above the diagonal, 0 elsewhere."""
    return scores.new_full(scores.shape[-2:], -math.inf).triu_(1)


def attend(
    query_key_value: Float[Tensor, "tokens 3 heads features"],
    batch: PackedBatch,
    dropout_rate: float,
    *,
    is_causal: bool = False,
) -> Float[Tensor, "tokens heads features"]:
    """Attend within each sequence of a packed batch, with the fastest kernel that applies."""
    if uses_flash(query_key_value):
        query, key, value = query_key_value.unbind(dim=1)
        context = attend_flash(query, key, value, batch, batch, is_causal=is_causal)
        return drop(context, dropout_rate)
    if torch.is_inference_mode_enabled() and query_key_value.is_cpu and dropout_rate == 0.0:
        return attend_runs(query_key_value, batch, is_causal=is_causal)
    num_heads = query_key_value.shape[2]
    heads = batch.lay_out_heads(3, num_heads)
    contexts = []
    for (query, key, value), mask in zip(heads.spread(query_key_value), heads.masks, strict=True):
        # Causal attention needs no mask: padding stands at the end, where no real token sees it.
        seen = None if is_causal else mask
        contexts.append(attend_rows(query, key, value, seen, dropout_rate, is_causal=is_causal))
    return batch.lay_out_heads(1, num_heads).gather(contexts)


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
        query: queries.
        key: keys.
        value: values, one for each key.
        mask: True for keys that may be attended to; None if there is no padding.
        is_causal: whether a token attends only to itself and those before it; needs mask=None.
    """
    attended = None if mask is None else mask[:, None, None, :]
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=attended, is_causal=is_causal
    )


def attend_runs(
    query_key_value: Float[Tensor, "tokens 3 heads features"],
    batch: PackedBatch,
    *,
    is_causal: bool = False,
) -> Float[Tensor, "tokens heads features"]:
    """Attend within runs of adjacent sequences of equal length, without padding, mask or copies.

    A batch sorted by length has few runs. Any other order gives the same result, only slower.
    """
    contexts, start = [], 0
    for length, run in groupby(batch.lengths):
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
    batch: PackedBatch,
    others: PackedBatch,
    *,
    is_causal: bool = False,
) -> Float[Tensor, "tokens heads features"]:
    """Attend with variable-length flash attention (CUDA, half precision).

    Args:
        query: queries.
        key: keys.
        value: values, one for each key.
        batch: the sequences of the queries.
        others: the sequences of the keys; `batch` itself in self-attention.
        is_causal: whether a token attends only to itself and those before it.
    """
    from torch.nn.attention.varlen import varlen_attn

    longest, longest_other = max(batch.lengths), max(others.lengths)
    window = (-1, 0) if is_causal else (-1, -1)
    context = varlen_attn(
        query, key, value, batch.offsets, others.offsets, longest, longest_other, window_size=window
    )
    assert isinstance(context, Tensor)  # it is a pair only if the log-sum-exp is requested
    return context


def attend_growing(
    query_key_value: Float[Tensor, "tokens 3 heads features"],
    batch: KVCache,
    layer: nn.Module,
) -> Float[Tensor, "tokens heads features"]:
    """Attend within the prompts in the first pass, then from the newest tokens to the KV cache.

    Args:
        query_key_value: of all prompt tokens at first, then of the newest token of each sequence.
        batch: the KV cache, to which the new keys and values are added.
        layer: the attention layer, under which the cache keeps them.
    """
    query, key, value = query_key_value.unbind(dim=1)
    keys, values = batch.remember(layer, key, value)
    if batch.prompts is not None:
        return attend(query_key_value, batch.prompts, 0.0, is_causal=True)
    return attend_fused(query[:, :, None], keys, values, batch.mask)[:, :, 0]
