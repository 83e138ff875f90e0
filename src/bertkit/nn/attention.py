"""Multi-head self-attention, and the paper's equation 1 (scaled dot-product attention).

`attend_spelled_out` is the equation, optionally causal. `SelfAttention` projects tokens to queries,
keys and values, and lets the batch attend: a packed batch within each of its sequences, a KV cache
from the newest tokens to all before them. `attend_fused` and `attend_flash` are faster.

Source: Vaswani et al. 2017, section 3.2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from bertkit.nn.masks import BIDIRECTIONAL, CAUSAL, AttentionMask

BYTE_VALUES = 256


class Dropout(nn.Module):
    """Zero each element with probability `rate` while training, and scale the others up.

    Source: Srivastava et al. 2014, "Dropout".
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, values: Float[Tensor, " *shape"]) -> Float[Tensor, " *shape"]:
        """Apply dropout in training mode; return the values unchanged in evaluation mode."""
        return drop(values, self.rate) if self.training else values

    def extra_repr(self) -> str:
        """Return the rate, for `print(model)`."""
        return f"rate={self.rate}"


def drop(values: Float[Tensor, " *shape"], rate: float) -> Float[Tensor, " *shape"]:
    """Zero elements at random from torch's default generator, and scale the others up."""
    if rate == 0.0:
        return values
    if values.device.type != "cpu":
        return F.dropout(values, rate)
    threshold = min(round(rate * BYTE_VALUES), BYTE_VALUES - 1)
    kept = random_bytes(values.numel()).view(values.shape).ge_(threshold)
    scale = BYTE_VALUES / (BYTE_VALUES - threshold)
    dropped: Tensor = _Drop.apply(values, kept, scale)  # type: ignore[no-untyped-call]
    return dropped


def random_bytes(count: int) -> Tensor:
    """Draw uniform bytes (uint8) from torch's default CPU generator."""
    words = torch.empty((count + 7) // 8, dtype=torch.int64)
    return words.random_(-(2**63), None).view(torch.uint8)[:count]


class _Drop(torch.autograd.Function):
    """Computes values × kept × scale, saving one byte per element for the backward pass."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        values: Float[Tensor, " *shape"],
        kept: UInt8[Tensor, " *shape"],
        scale: float,
    ) -> Float[Tensor, " *shape"]:
        """Zero the dropped elements, and scale the others."""
        ctx.save_for_backward(kept)
        ctx.scale = scale  # type: ignore[attr-defined]
        return (values * kept).mul_(scale)

    @staticmethod
    def backward(
        ctx: torch.autograd.function.FunctionCtx, gradient: Float[Tensor, " *shape"]
    ) -> tuple[Float[Tensor, " *shape"], None, None]:
        """Return the gradient of the kept elements, scaled."""
        (kept,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return (gradient * kept).mul_(ctx.scale), None, None  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class HeadLayout:
    """A mapping of rows to places; some places may stay empty."""

    place_of_row: Int[Tensor, " rows"]
    row_of_place: Int[Tensor, " places"]  # 0 at empty places
    empty_places: Int[Tensor, " empty"]

    @classmethod
    def of(cls, place_of_row: Int[Tensor, " rows"], num_places: int) -> "HeadLayout":
        """Build the layout from the place of each row."""
        row_of_place = place_of_row.new_full((num_places,), -1)
        row_of_place[place_of_row] = torch.arange(len(place_of_row), device=place_of_row.device)
        empty_places = (row_of_place < 0).nonzero().flatten()
        return cls(place_of_row, row_of_place.clamp_min_(0), empty_places)

    def scatter(self, rows: Float[Tensor, "rows features"]) -> Float[Tensor, "places features"]:
        """Move rows to their places, with zeros at empty places."""
        moved: Tensor = _Move.apply(rows, self, True)  # type: ignore[no-untyped-call]
        return moved

    def gather(self, places: Float[Tensor, "places features"]) -> Float[Tensor, "rows features"]:
        """Move rows back from their places; empty places are ignored."""
        moved: Tensor = _Move.apply(places, self, False)  # type: ignore[no-untyped-call]
        return moved


class _Move(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, layout: HeadLayout, is_scattering: bool) -> Tensor:
        ctx.layout, ctx.is_scattering = layout, is_scattering
        return _copy_rows(values, layout, is_scattering)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _copy_rows(gradient, ctx.layout, not ctx.is_scattering), None, None


def _copy_rows(values: Tensor, layout: HeadLayout, is_scattering: bool) -> Tensor:
    if not is_scattering:
        return values.index_select(0, layout.place_of_row)
    return values.index_select(0, layout.row_of_place).index_fill_(0, layout.empty_places, 0)


def length_mask(lengths: Sequence[int], device: torch.device) -> Bool[Tensor, "sequences longest"]:
    """Return the mask of sequences in padded rows: True at tokens, False at padding."""
    columns = torch.arange(max(lengths), device=device)
    return columns < torch.tensor(lengths, device=device)[:, None]


@dataclass(frozen=True, eq=False)
class HeadBlocks:
    """The layout of heads in padded blocks `[sequences, heads, longest]`, one per group and part.

    Attributes:
        layout: maps `[tokens, parts, heads]` to the blocks, end to end: all parts of the first
            group, then those of the next.
        shapes: the block shape of each group.
        masks: of each group, True at tokens; None if all its sequences are equally long.
        num_parts: parts of each head: 3 for query, key and value; 2 for key and value.
    """

    layout: HeadLayout
    shapes: tuple[tuple[int, int, int], ...]
    masks: tuple[Bool[Tensor, "_ _"] | None, ...]
    num_parts: int

    def scatter(
        self, heads: Float[Tensor, "tokens *parts_and_heads features"]
    ) -> list[list[Float[Tensor, "_ _ _ features"]]]:
        """Return, for each group, a block `[sequences, heads, longest, features]` per part.

        Padding is zero.
        """
        sizes = [math.prod(shape) for shape in self.shapes for _ in range(self.num_parts)]
        blocks = iter(self.layout.scatter(heads.flatten(0, -2)).split_with_sizes(sizes))
        return [
            [next(blocks).view(*shape, heads.shape[-1]) for _ in range(self.num_parts)]
            for shape in self.shapes
        ]

    def gather(
        self, blocks: Sequence[Float[Tensor, "_ _ _ features"]]
    ) -> Float[Tensor, "tokens heads features"]:
        """Return the heads of all tokens, end to end, from one block of each group."""
        places = [block.flatten(0, 2) for block in blocks]
        rows = self.layout.gather(places[0] if len(places) == 1 else torch.cat(places))
        return rows.view(-1, self.shapes[0][1], rows.shape[1])


def group_lengths(lengths: Sequence[int], min_share: float) -> list[list[int]]:
    """Group the indices of sequences of similar length, the longest group first.

    The cost of attention grows with the square of the padded length, and most of a short sequence's
    row would be padding if it shared a block with a long one. Its length relative to the longest is
    at least `min_share`; 0 makes one group.
    """
    groups: list[list[int]] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if not groups or lengths[number] < min_share * lengths[groups[-1][0]]:
            groups.append([])
        groups[-1].append(number)
    return groups


def lay_out_heads(
    lengths: Sequence[int],
    groups: Sequence[Sequence[int]],
    num_parts: int,
    num_heads: int,
    device: torch.device,
) -> HeadBlocks:
    """Lay out the parts of all heads: query, key and value, or only the context.

    Example: two sequences of 3 and 2 tokens in one group, with one head of two parts. The first
    parts go to places 0 1 2 and 3 4, the second ones to 6 7 8 and 9 10; 5 and 11 stay empty.

    Args:
        num_parts: parts of each head.
    """
    shapes, masks, num_places = [], [], 0
    # For each sequence: the start of its group, the group's size, its row there, the row's width.
    homes = [(0, 0, 0, 0)] * len(lengths)
    for group in groups:
        longest = max(lengths[number] for number in group)
        for number_in_group, number in enumerate(group):
            homes[number] = (num_places, len(group), number_in_group, longest)
        sizes = [lengths[number] for number in group]
        shapes.append((len(group), num_heads, longest))
        masks.append(length_mask(sizes, device) if min(sizes) < longest else None)
        num_places += num_parts * math.prod(shapes[-1])
    repeats = torch.tensor(lengths, device=device)
    by_token = torch.tensor(homes, device=device).repeat_interleave(repeats, dim=0)
    start, size, row, width = by_token[:, :, None, None].unbind(dim=1)
    part = torch.arange(num_parts, device=device)[:, None]
    head = torch.arange(num_heads, device=device)
    column = length_mask(lengths, device).nonzero()[:, 1, None, None]
    place = start + ((part * size + row) * num_heads + head) * width + column
    layout = HeadLayout.of(place.flatten(), num_places)
    return HeadBlocks(layout, tuple(shapes), tuple(masks), num_parts)


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
