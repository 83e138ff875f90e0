"""Fast kernels of attention: padded rows, runs of equal length, windows, and flash attention.

`attend_within` chooses the one of a layer. All compute the same as `attend_spelled_out`.
"""

import math
from collections.abc import Callable, Sequence
from itertools import groupby

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bertkit.nn.attention import SelfAttention, attend_spelled_out, hide


def attend_within(
    query: Float[Tensor, "batch heads length features"],
    key: Float[Tensor, "batch heads length features"],
    value: Float[Tensor, "batch heads length features"],
    mask: Bool[Tensor, "batch length"] | None = None,
    *,
    layer: SelfAttention,
    bias: Float[Tensor, "heads longest longest"] | None = None,
) -> Float[Tensor, "batch heads length features"]:
    """Compute a layer's attention within padded rows, given the bias of longer ones."""
    rate, length = layer.dropout_rate if layer.training else 0.0, query.shape[2]
    if layer.window is not None:
        assert bias is None, "no family has windows and relative positions"
        return attend_windows(query, key, value, mask, rate, layer.window)
    # Causal attention needs no mask: no real token sees the padding at the end.
    mask = None if layer.is_causal else mask
    bias = None if bias is None else bias[:, :length, :length]
    return attend_rows(query, key, value, mask, rate, is_causal=layer.is_causal, bias=bias)


MIN_RUN = 128  # queries that attend together where windows are short
SHORT = 64  # longest row for which PyTorch's fused forward and backward are slower on a CPU


def attend_rows(
    query: Float[Tensor, "batch heads length features"],
    key: Float[Tensor, "batch heads others features"],
    value: Float[Tensor, "batch heads others features"],
    mask: Bool[Tensor, "batch others"] | None,
    dropout_rate: float,
    *,
    is_causal: bool = False,
    bias: Float[Tensor, "_ length others"] | None = None,
) -> Float[Tensor, "batch heads length features"]:
    """Attend within padded rows.

    Uses `attend_spelled_out` with dropout on the attention weights, and for training on short
    sequences on a CPU; otherwise `attend_fused`.
    """
    is_short = query.is_cpu and max(query.shape[2], key.shape[2]) <= SHORT
    if dropout_rate > 0.0 or (is_short and query.requires_grad):
        return attend_spelled_out(
            query, key, value, mask, dropout_rate, is_causal=is_causal, bias=bias
        )
    return attend_fused(query, key, value, mask, is_causal=is_causal, bias=bias)


def attend_windows(
    query: Float[Tensor, "batch heads length features"],
    key: Float[Tensor, "batch heads length features"],
    value: Float[Tensor, "batch heads length features"],
    mask: Bool[Tensor, "batch length"] | None,
    dropout_rate: float,
    window: int,
) -> Float[Tensor, "batch heads length features"]:
    """Attend within padded rows to tokens at a distance of at most `window`.

    Each run of queries attends to the keys that its windows reach, so that the cost grows with the
    length, and not with its square.
    """
    length, step = query.shape[2], max(MIN_RUN, 2 * window)
    contexts = []
    for start in range(0, length, step):
        stop = min(start + step, length)
        reached = slice(max(0, start - window), min(stop + window, length))
        queries = torch.arange(start, stop, device=query.device)[:, None]
        keys = torch.arange(reached.start, reached.stop, device=query.device)
        is_far = (queries - keys).abs() > window
        bias = query.new_zeros(1, *is_far.shape).masked_fill_(is_far, -math.inf)
        context = attend_rows(
            query[:, :, start:stop],
            key[:, :, reached],
            value[:, :, reached],
            None if mask is None else mask[:, reached],
            dropout_rate,
            bias=bias if is_far.shape[1] > window + 1 else None,
        )
        contexts.append(context)
    return contexts[0] if len(contexts) == 1 else torch.cat(contexts, dim=2)


def attend_fused(
    query: Float[Tensor, "batch heads length features"],
    key: Float[Tensor, "batch heads others features"],
    value: Float[Tensor, "batch heads others features"],
    mask: Bool[Tensor, "batch others"] | None,
    *,
    is_causal: bool = False,
    bias: Float[Tensor, "_ length others"] | None = None,
) -> Float[Tensor, "batch heads length features"]:
    """Attend with PyTorch's fused kernel.

    Args:
        mask: True for keys that may be attended to; None if there is no padding.
        is_causal: whether a token attends only to itself and those before it; needs mask=None.
        bias: added to the scores.
    """
    attended = None if mask is None else mask[:, None, None, :]
    if bias is not None:
        attended = hide(bias.to(query.dtype), mask)
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=attended, is_causal=is_causal
    )


def attend_runs(
    query_key_value: Float[Tensor, "tokens 3 heads features"],
    lengths: Sequence[int],
    attend: Callable[[Tensor, Tensor, Tensor], Tensor],
) -> Float[Tensor, "tokens heads features"]:
    """Attend within runs of adjacent sequences of equal length, without padding, mask or copies.

    A batch sorted by length has few runs. Any other order gives the same result, only slower.

    Args:
        attend: attention within rows, of query, key and value.
    """
    contexts, start = [], 0
    for length, run in groupby(lengths):
        stop = start + length * len(list(run))
        rows = query_key_value[start:stop].view(-1, length, *query_key_value.shape[1:])
        context = attend(*rows.permute(2, 0, 3, 1, 4))
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
    window: int | None = None,
) -> Float[Tensor, "tokens heads features"]:
    """Attend with variable-length flash attention (CUDA, half precision).

    Args:
        offsets: where sequences start, and the last one ends, among queries and among keys.
        longest: length of the longest sequence of queries, and of keys.
        window: the largest distance at which a token attends to another; None for any.
    """
    from torch.nn.attention.varlen import varlen_attn

    reach = -1 if window is None else window
    context = varlen_attn(
        query, key, value, *offsets, *longest, window_size=(reach, 0 if is_causal else reach)
    )
    assert isinstance(context, Tensor)  # it is a pair only if the log-sum-exp is requested
    return context
