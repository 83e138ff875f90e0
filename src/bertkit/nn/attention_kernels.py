"""Kernels of attention: the result of `attention.attend_spelled_out`, computed faster.

A batch takes the first that applies:

- `attend_flash`: variable-length flash attention, on CUDA (Ampere or later) in half precision, for
  heads of 8, 16 … 256 features. It has no dropout on the attention weights; in training, dropout
  is applied to the attention output instead.
- `attend_runs`: on a CPU in inference mode, views of sequences of equal length.
- `attend_rows`: padded rows; on a CPU, only sequences of similar length are padded together. It
  uses PyTorch's fused kernel (`attend_fused`), or `attend_spelled_out` with dropout on the
  attention weights, and for training on short sequences on a CPU, where that is faster.
"""

from collections.abc import Sequence
from itertools import groupby

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bertkit.nn.attention import attend_spelled_out

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
        query: queries.
        key: keys.
        value: values, one for each key.
        offsets: where sequences start, and the last one ends, among queries and among keys.
        longest: length of the longest sequence of queries, and of keys.
        is_causal: whether a token attends only to itself and those before it.
    """
    from torch.nn.attention.varlen import varlen_attn

    window = (-1, 0) if is_causal else (-1, -1)
    context = varlen_attn(query, key, value, *offsets, *longest, window_size=window)
    assert isinstance(context, Tensor)  # it is a pair only if the log-sum-exp is requested
    return context
