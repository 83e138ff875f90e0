"""Heads of packed sequences laid out in padded blocks, and back, by copies of whole rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable


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
