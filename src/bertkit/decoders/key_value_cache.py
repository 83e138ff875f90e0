"""The KV cache, for generating text token by token.

It takes the place of the packed batch when generating, with one row per sequence. It keeps each
layer's keys and values of all tokens so far, so that a step computes one token of each sequence.

Source: Shazeer 2019, "Fast Transformer Decoding: One Write-Head is All You Need", section 2.4.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.nn.attention import SelfAttention
from bertkit.nn.head_blocks import length_mask
from bertkit.nn.kernels import attend_fused
from bertkit.nn.packing import PackedBatch

FIRST_CAPACITY = 32


def count_room(length: int) -> int:
    """Return the capacity, in tokens, of a row that began with one token and grew to a length."""
    room = FIRST_CAPACITY
    while room < length:
        room *= 2
    return room


class KVCache:
    """The KV cache of a batch of growing sequences, and the input of the next pass.

    A model takes it in place of a packed batch. The first pass computes the prompts. Before each
    later pass, call `select` if rows change, then `extend`.

    Attributes:
        prompts: as given; None after the first `extend`.
        lengths: tokens of each sequence.
        input_ids: token ids of the next pass: all prompts end to end, or each row's newest token.
        token_type_ids: segments of these tokens.
        position_ids: positions of these tokens.
        mask: True at tokens, False at padding; None if all rows are equally long.
        layers: keys and values of each layer, in rows with room for more tokens.
    """

    def __init__(self, prompts: PackedBatch) -> None:
        self.prompts: PackedBatch | None = prompts
        self.lengths = torch.tensor(prompts.lengths, device=prompts.input_ids.device)
        self.input_ids: Tensor = prompts.input_ids
        self.token_type_ids: Tensor = prompts.token_type_ids
        self.position_ids: Tensor = prompts.position_ids
        self.mask: Bool[Tensor, "rows longest"] | None = None
        self._longest = max(prompts.lengths)
        self._has_equal_lengths = min(prompts.lengths) == self._longest
        self.layers: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Append a token to each sequence, as the input of the next pass."""
        self.prompts = None
        self.input_ids = tokens
        self.token_type_ids = torch.zeros_like(tokens)
        self.position_ids = self.lengths
        self.lengths = self.lengths + 1
        self._longest += 1
        if not self._has_equal_lengths:
            columns = torch.arange(self._longest, device=tokens.device)
            self.mask = columns < self.lengths[:, None]

    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Keep these rows, in this order; a row may occur more than once."""
        self.lengths = self.lengths[rows]
        for layer, (keys, values) in self.layers.items():  # only one layer is in memory twice
            self.layers[layer] = (self.choose(keys, rows), self.choose(values, rows))

    def attend(
        self,
        query_key_value: Float[Tensor, "tokens 3 heads features"],
        layer: SelfAttention,
        bias: Float[Tensor, "heads longest longest"] | None = None,
    ) -> Float[Tensor, "tokens heads features"]:
        """Attend within the prompts in the first pass, then from the newest tokens to the cache."""
        assert layer.is_causal, "only causal attention can extend sequences token by token"
        assert bias is None, "no decoder has relative positions"
        query, key, value = query_key_value.unbind(dim=1)
        keys, values = self.update(layer, key, value)
        if self.prompts is not None:
            return self.prompts.attend(query_key_value, layer)
        return attend_fused(query[:, :, None], keys, values, self.mask)[:, :, 0]

    def update(
        self,
        layer: nn.Module,
        key: Float[Tensor, "tokens heads features"],
        value: Float[Tensor, "tokens heads features"],
    ) -> tuple[
        Float[Tensor, "rows heads longest features"], Float[Tensor, "rows heads longest features"]
    ]:
        """Add a layer's keys and values of this pass's tokens; return those of all tokens."""
        if self.prompts is not None:
            kept = (self._lay_out(key), self._lay_out(value))
        else:
            keys, values = self.layers[layer]
            if self._longest > keys.shape[2]:  # doubles the capacity
                keys = torch.cat([keys, torch.zeros_like(keys)], dim=2)
                values = torch.cat([values, torch.zeros_like(values)], dim=2)
            kept = (self._append(keys, key), self._append(values, value))
        self.layers[layer] = kept
        longest = self._longest
        return kept[0][:, :, :longest], kept[1][:, :, :longest]

    def _lay_out(self, tokens: Tensor) -> Tensor:
        """Put the prompts' tokens into padded rows, with room for more after them."""
        assert self.prompts is not None, "rows are laid out once"
        mask = length_mask(self.prompts.lengths, tokens.device)
        capacity = max(FIRST_CAPACITY, 2 * self._longest)
        rows = tokens.new_zeros(len(mask), tokens.shape[1], capacity, tokens.shape[2])
        rows[:, :, : self._longest].transpose(1, 2)[mask] = tokens
        return rows

    @torch.no_grad()  # neither `out=` nor writing in place supports gradients
    def choose(self, rows: Tensor, chosen: Tensor) -> Tensor:
        """Select rows, copying only the used part of their capacity."""
        kept = rows.new_empty(len(chosen), *rows.shape[1:])
        used = self._longest
        torch.index_select(rows[:, :, :used], 0, chosen, out=kept[:, :, :used])
        return kept

    def _append(self, rows: Tensor, newest: Tensor) -> Tensor:
        """Write each row's newest token after its others."""
        if self._has_equal_lengths:
            rows[:, :, self._longest - 1] = newest
        else:
            rows[:, :, self._longest - 1] = 0  # places not yet written must not be NaN
            numbers = torch.arange(len(rows), device=rows.device)
            rows[numbers, :, self.position_ids] = newest
        return rows


def find_sources(
    rows: Int[Tensor, " chosen"], num_rows: int, num_sources: int
) -> Int[Tensor, " left"] | None:
    """Return the sources that still have rows, each once; None if all have.

    Rows of a source are adjacent, and before there were equally many of each.
    """
    left = torch.unique_consecutive(rows // (num_rows // num_sources))
    return None if len(left) == num_sources else left
