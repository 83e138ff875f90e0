"""Multi-head self-attention over a packed batch: the one place that knows the borders.

Four kernels compute the same thing, softmax(q kᵀ / √d) v within each sequence; `attend` takes the
one that fits the device, the mode and the dropout:

- `attend_flash`: CUDA in half precision, variable-length flash attention. It has no dropout on the
  weights; in training, dropout on the attention's output takes its place there.
- `attend_runs`: a CPU in inference mode, `attend_fused` over views of sequences of equal length.
- `attend_fused`: anywhere, without dropout, over rows of equal or padded length; on a CPU sequences
  of similar length are padded to each other only.
- `attend_spelled_out`: anywhere, with dropout on the attention weights, as in the paper.

Source: Vaswani et al. 2017, section 3.2.
"""

import math
from itertools import groupby

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.nn.dropout import drop
from bertkit.nn.packing import PackedBatch


class SelfAttention(nn.Module):
    """Each token gathers from all tokens of its own sequence.

    Args:
        hidden_size: features of a token; a multiple of `num_heads`.
        num_heads: attention heads, each of hidden_size / num_heads features.
        dropout_rate: probability with which an attention weight is dropped while training.
    """

    def __init__(self, hidden_size: int, num_heads: int, dropout_rate: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.dropout_rate = dropout_rate
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
        self.output = nn.Linear(hidden_size, hidden_size)

    def forward(
        self,
        tokens: Float[Tensor, "tokens hidden"],
        batch: PackedBatch,
        kept: Int[Tensor, " rows"] | None = None,
    ) -> Float[Tensor, "rows hidden"]:
        """Attend, and mix the heads: of all tokens, or of those that are kept."""
        heads: Tensor = self.query_key_value(tokens)
        rate = self.dropout_rate if self.training else 0.0
        context = attend(heads.view(len(tokens), 3, self.num_heads, -1), batch, rate)
        rows = context if kept is None else context[kept]
        mixed: Tensor = self.output(rows.flatten(start_dim=1))
        return mixed


def attend(
    query_key_value: Float[Tensor, "tokens 3 heads features"],
    batch: PackedBatch,
    dropout_rate: float,
) -> Float[Tensor, "tokens heads features"]:
    """Attention within each sequence of a packed batch, by the kernel that fits."""
    if query_key_value.is_cuda and query_key_value.dtype in (torch.float16, torch.bfloat16):
        query, key, value = query_key_value.unbind(dim=1)
        return drop(attend_flash(query, key, value, batch), dropout_rate)
    if torch.is_inference_mode_enabled() and query_key_value.is_cpu and dropout_rate == 0.0:
        return attend_runs(query_key_value, batch)
    num_tokens, _, num_heads, num_features = query_key_value.shape
    heads = batch.place_heads(3, num_heads)
    rows = heads.placement.spread(query_key_value.flatten(0, 2))
    sizes = [math.prod(shape) for shape in heads.shapes for _ in range(3)]
    parts = iter(rows.split_with_sizes(sizes))
    contexts = []
    for shape, mask in zip(heads.shapes, heads.masks, strict=True):
        query, key, value = (next(parts).view(*shape, num_features) for _ in range(3))
        if dropout_rate > 0.0:
            context = attend_spelled_out(query, key, value, mask, dropout_rate)
        else:
            context = attend_fused(query, key, value, mask)
        contexts.append(context.flatten(0, 2))
    context = contexts[0] if len(contexts) == 1 else torch.cat(contexts)
    tokens = batch.place_heads(1, num_heads).placement.gather(context)
    return tokens.view(num_tokens, num_heads, num_features)


def attend_flash(
    query: Float[Tensor, "tokens heads features"],
    key: Float[Tensor, "tokens heads features"],
    value: Float[Tensor, "tokens heads features"],
    batch: PackedBatch,
) -> Float[Tensor, "tokens heads features"]:
    """Variable-length flash attention; CUDA, half precision."""
    from torch.nn.attention.varlen import varlen_attn

    longest = max(batch.lengths)
    context = varlen_attn(query, key, value, batch.offsets, batch.offsets, longest, longest)
    assert isinstance(context, Tensor)  # a pair only where the log-sum-exp was asked for
    return context


def attend_runs(
    query_key_value: Float[Tensor, "tokens 3 heads features"],
    batch: PackedBatch,
) -> Float[Tensor, "tokens heads features"]:
    """Attention over each run of neighbours of equal length: without padding, mask or copies.

    A batch in order of length has few runs. In any order the result is the same, and only slower.
    """
    contexts, start = [], 0
    for length, run in groupby(batch.lengths):
        stop = start + length * len(list(run))
        rows = query_key_value[start:stop].view(-1, length, *query_key_value.shape[1:])
        query, key, value = rows.permute(2, 0, 3, 1, 4)
        contexts.append(attend_fused(query, key, value, None).transpose(1, 2).flatten(0, 1))
        start = stop
    return contexts[0] if len(contexts) == 1 else torch.cat(contexts)


def attend_fused(
    query: Float[Tensor, "batch heads length features"],
    key: Float[Tensor, "batch heads length features"],
    value: Float[Tensor, "batch heads length features"],
    mask: Bool[Tensor, "batch length"] | None,
) -> Float[Tensor, "batch heads length features"]:
    """PyTorch's fused attention; True in `mask` means "may be attended to"."""
    attended = None if mask is None else mask[:, None, None, :]
    return F.scaled_dot_product_attention(query, key, value, attn_mask=attended)


def attend_spelled_out(
    query: Float[Tensor, "batch heads length features"],
    key: Float[Tensor, "batch heads length features"],
    value: Float[Tensor, "batch heads length features"],
    mask: Bool[Tensor, "batch length"] | None,
    dropout_rate: float,
) -> Float[Tensor, "batch heads length features"]:
    """Equation 1 of the paper, line by line, with dropout on the weights."""
    scores = score_keys(query, key)
    if mask is not None:
        barred = torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, -math.inf)
        scores += barred[:, None, None, :]
    weights = drop(scores.softmax(dim=-1), dropout_rate)
    return weights @ value


def score_keys(
    query: Float[Tensor, "*heads length features"], key: Float[Tensor, "*heads length features"]
) -> Float[Tensor, "*heads length length"]:
    """Q kᵀ / √features: a row for each token that looks, a column for each that is seen."""
    return (query / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)
