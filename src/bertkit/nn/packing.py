"""The packed batch: the tokens of all sequences end to end, and their lengths.

The encoder sees no padding. The usual padded form, `[batch, length]` with an `attention_mask`, is
converted to this one on input and back on output.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bertkit.base.errors import ForkError, InputError
from bertkit.nn.attention import SelfAttention
from bertkit.nn.dropout import drop
from bertkit.nn.head_blocks import HeadBlocks, group_lengths, lay_out_heads
from bertkit.nn.kernels import attend_flash, attend_runs, attend_within, uses_flash
from bertkit.nn.packed_ids import PackedIds


class Computing:
    """Whether models have computed in this process, and in its parent before the fork."""

    def __init__(self) -> None:
        self.has_begun = False
        self.lacks_threads = False

    def begin(self) -> None:
        """Note that a model computes, or refuse it where torch would wait for lost threads forever.

        Raises:
            ForkError: a model had computed before this process was forked.
        """
        if self.lacks_threads and torch.get_num_threads() > 1:
            raise ForkError(
                "this process was forked after its parent had used a model, and torch's threads"
                " don't survive that; load models before the fork but use them only after it, or"
                ' start the process by "spawn", or call torch.set_num_threads(1) in it first'
            )
        self.has_begun = True

    def note_fork(self) -> None:
        """Note that this process is the child of a fork."""
        self.lacks_threads = self.has_begun


COMPUTING = Computing()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=COMPUTING.note_fork)


MIN_SHARE_OF_LONGEST = 0.75  # minimum length of a sequence in a group that attention pads together


@dataclass(frozen=True, eq=False)
class PackedBatch:
    """Sequences laid end to end.

    Attributes:
        position_ids: the position of each token in its sequence, from 0; for padded input, mostly
            its column.
        lengths: tokens in each sequence, none of them 0; kept on the host, so that splitting the
            batch never waits for the device.
    """

    input_ids: Int[Tensor, " tokens"]
    token_type_ids: Int[Tensor, " tokens"]  # 0 for segment A, 1 for segment B
    position_ids: Int[Tensor, " tokens"]
    lengths: tuple[int, ...]
    _head_blocks: dict[tuple[int, int], HeadBlocks] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        COMPUTING.begin()

    @classmethod
    def of(cls, ids: PackedIds) -> Self:
        """Make tensors of packed ids, which share their memory.

        Raises:
            ForkError: this process was forked after its parent had packed a batch.
        """
        return cls(
            input_ids=torch.from_numpy(ids.input_ids),
            token_type_ids=torch.from_numpy(ids.token_type_ids),
            position_ids=torch.from_numpy(ids.position_ids),
            lengths=ids.lengths,
        )

    @classmethod
    def from_sequences(
        cls, input_ids: Sequence[Sequence[int]], token_type_ids: Sequence[Sequence[int]]
    ) -> Self:
        """Pack lists of token ids; errors as in `PackedIds.from_sequences` and `of`."""
        return cls.of(PackedIds.from_sequences(input_ids, token_type_ids))

    @classmethod
    def from_flat(
        cls,
        ids: npt.NDArray[np.integer],
        lengths: npt.NDArray[np.int64],
        segments: npt.NDArray[np.int64] | None = None,
    ) -> Self:
        """Pack token ids that lie end to end already, as in `PackedIds.from_flat`."""
        return cls.of(PackedIds.from_flat(ids, lengths, segments))

    @classmethod
    def from_single(cls, input_ids: Sequence[Sequence[int]]) -> Self:
        """Pack lists of token ids of single texts; all are segment A."""
        return cls.of(PackedIds.from_single(input_ids))

    @classmethod
    def from_padded(
        cls,
        input_ids: Int[Tensor, "batch length"],
        token_type_ids: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
        *,
        counts_tokens: bool = False,
    ) -> Self:
        """Keep the tokens where `mask` is True; a token's position is its column.

        Args:
            counts_tokens: a position is the number of tokens before it instead, whatever padding.

        Raises:
            InputError: a row has no token.
        """
        lengths = tuple(mask.sum(dim=1).tolist())
        if not lengths or 0 in lengths:
            raise InputError("each row of attention_mask must have at least one token")
        columns = mask.cumsum(dim=1) if counts_tokens else torch.ones_like(mask).cumsum(dim=1)
        return cls(input_ids[mask], token_type_ids[mask], columns[mask] - 1, lengths)

    @cached_property
    def offsets(self) -> Int[Tensor, " sequences_and_one"]:
        """The start of each sequence, then the end of the last, on the batch's device."""
        ends = torch.tensor((0, *self.lengths), dtype=torch.int32).cumsum(0, dtype=torch.int32)
        return ends.to(self.input_ids.device, non_blocking=True)

    @property
    def first_tokens(self) -> Int[Tensor, " sequences"]:
        """The index of each sequence's first token, [CLS]."""
        return self.offsets[:-1]

    @property
    def last_tokens(self) -> Int[Tensor, " sequences"]:
        """The index of each sequence's last token, [SEP]."""
        return self.offsets[1:] - 1

    @cached_property
    def groups(self) -> list[list[int]]:
        """Indices of the sequences that attention pads together.

        On a CPU, those of similar length; elsewhere all, because each kernel launch has a cost.
        """
        is_cpu = self.input_ids.device.type == "cpu"
        return group_lengths(self.lengths, MIN_SHARE_OF_LONGEST if is_cpu else 0.0)

    def lay_out_heads(self, num_parts: int, num_heads: int) -> HeadBlocks:
        """Call `lay_out_heads`, once for all layers."""
        key = (num_parts, num_heads)
        if key not in self._head_blocks:
            device = self.input_ids.device
            self._head_blocks[key] = lay_out_heads(
                self.lengths, self.groups, num_parts, num_heads, device
            )
        return self._head_blocks[key]

    def attend(
        self,
        query_key_value: Float[Tensor, "tokens 3 heads features"],
        layer: SelfAttention,
        bias: Float[Tensor, "heads longest longest"] | None = None,
    ) -> Float[Tensor, "tokens heads features"]:
        """Attend within each sequence, with the fastest kernel that applies."""
        rate = layer.dropout_rate if layer.training else 0.0
        if uses_flash(query_key_value) and bias is None:
            query, key, value = query_key_value.unbind(dim=1)
            offsets, longest = (self.offsets, self.offsets), (max(self.lengths),) * 2
            context = attend_flash(
                *(query, key, value, offsets, longest),
                is_causal=layer.is_causal,
                window=layer.window,
            )
            return drop(context, rate)
        rows = partial(attend_within, layer=layer, bias=bias)
        if torch.is_inference_mode_enabled() and query_key_value.is_cpu and rate == 0.0:
            return attend_runs(query_key_value, self.lengths, rows)
        blocks = self.lay_out_heads(3, layer.num_heads)
        scattered = zip(blocks.scatter(query_key_value), blocks.masks, strict=True)
        contexts = [rows(query, key, value, mask) for (query, key, value), mask in scattered]
        return self.lay_out_heads(1, layer.num_heads).gather(contexts)

    @property
    def num_tokens(self) -> int:
        """Number of tokens of all sequences."""
        return self.input_ids.shape[0]

    def to(self, device: torch.device) -> Self:
        """Return the batch on another device; itself if it is there already."""
        if self.input_ids.device == device:
            return self
        return replace(
            self,
            input_ids=self.input_ids.to(device, non_blocking=True),
            token_type_ids=self.token_type_ids.to(device, non_blocking=True),
            position_ids=self.position_ids.to(device, non_blocking=True),
        )


def pad(
    tokens: Float[Tensor, "tokens *rest"], mask: Bool[Tensor, "batch length"]
) -> Float[Tensor, "batch length *rest"]:
    """Put packed tokens where `mask` is True, in order, and zeros elsewhere."""
    padded = tokens.new_zeros(*mask.shape, *tokens.shape[1:])
    padded[mask] = tokens
    return padded


def take_sequences(batch: PackedBatch, chosen: Sequence[int]) -> PackedBatch:
    """Return the batch of some sequences, in the given order; only the host looks at lengths."""
    counts = np.array(batch.lengths)
    starts, counts = (np.cumsum(counts) - counts)[chosen], counts[chosen]
    shifts = starts - (np.cumsum(counts) - counts)
    places = torch.from_numpy(np.arange(counts.sum()) + np.repeat(shifts, counts))
    places = places.to(batch.input_ids.device, non_blocking=True)
    return PackedBatch(
        input_ids=batch.input_ids[places],
        token_type_ids=batch.token_type_ids[places],
        position_ids=batch.position_ids[places],
        lengths=tuple(counts.tolist()),
    )


def reduce_tokens(
    tokens: Float[Tensor, "tokens features"], batch: PackedBatch, how: Literal["mean", "max"]
) -> Float[Tensor, "sequences features"]:
    """Return the mean, or each feature's maximum, of the tokens of each sequence."""
    lengths = torch.tensor(batch.lengths, device=tokens.device)
    return torch.segment_reduce(tokens, how, lengths=lengths)
