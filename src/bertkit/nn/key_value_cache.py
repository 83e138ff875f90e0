"""Sequences that grow by a token at a time, and what attention remembers of them.

The other inner form beside the packed batch: a row a sequence, for generating. Keys and values of
all tokens so far are kept, layer by layer (the KV cache), so that a step computes one token of each
sequence.

Source: Shazeer 2019, "Fast Transformer Decoding: One Write-Head is All You Need", section 2.4.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.nn.head_layout import length_mask
from bertkit.nn.packing import PackedBatch

FIRST_CAPACITY = 32


def count_room(length: int) -> int:
    """Tokens for which a row has room that begins with one token and grows to a length."""
    room = FIRST_CAPACITY
    while room < length:
        room *= 2
    return room


class KVCache:
    """Prompts at first, then a token of each sequence in each step.

    A model reads it as it reads a packed batch. The first pass reads the prompts; before each later
    one come `select`, where rows change, and then `extend`.

    Args:
        prompts: what the sequences begin with.

    Attributes:
        prompts: as given; None once tokens were added.
        lengths: tokens of each sequence.
        input_ids: what the next pass reads: of all prompts end to end, or the newest of each row.
        token_type_ids: of the same.
        position_ids: of the same.
        mask: where a row has a token; None where all rows are equally long.
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
        self._remembered: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Add a token to each sequence: what the next pass reads."""
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
        """Keep some rows, in this order; a row may be there more than once."""
        self.lengths = self.lengths[rows]
        for layer, (keys, values) in self._remembered.items():  # so only one is there twice
            self._remembered[layer] = (self._choose(keys, rows), self._choose(values, rows))

    def remember(
        self,
        layer: nn.Module,
        key: Float[Tensor, "tokens heads features"],
        value: Float[Tensor, "tokens heads features"],
    ) -> tuple[
        Float[Tensor, "rows heads longest features"], Float[Tensor, "rows heads longest features"]
    ]:
        """Keep what a layer computed of the tokens of this pass.

        Returns:
            Keys and values of all tokens so far.
        """
        if self.prompts is not None:
            kept = (self._lay_out(key), self._lay_out(value))
        else:
            keys, values = self._with_room(layer)
            kept = (self._append(keys, key), self._append(values, value))
        self._remembered[layer] = kept
        longest = self._longest
        return kept[0][:, :, :longest], kept[1][:, :, :longest]

    def _lay_out(self, tokens: Tensor) -> Tensor:
        """The prompts' tokens in rows, with room for more behind them."""
        assert self.prompts is not None, "rows are laid out once"
        mask = length_mask(self.prompts.lengths, tokens.device)
        capacity = max(FIRST_CAPACITY, 2 * self._longest)
        rows = tokens.new_zeros(len(mask), tokens.shape[1], capacity, tokens.shape[2])
        rows[:, :, : self._longest].transpose(1, 2)[mask] = tokens
        return rows

    def _with_room(self, layer: nn.Module) -> tuple[Tensor, Tensor]:
        """A layer's keys and values, moved to twice the room where it is used up."""
        keys, values = self._remembered[layer]
        capacity = keys.shape[2]
        if self._longest <= capacity:
            return keys, values
        return (
            torch.cat([keys, torch.zeros_like(keys)], dim=2),
            torch.cat([values, torch.zeros_like(values)], dim=2),
        )

    @torch.no_grad()  # an `out` has no gradient, and neither has what is written into
    def _choose(self, rows: Tensor, chosen: Tensor) -> Tensor:
        """Some of the rows; of their room only what is used is copied."""
        kept = rows.new_empty(len(chosen), *rows.shape[1:])
        used = self._longest
        torch.index_select(rows[:, :, :used], 0, chosen, out=kept[:, :, :used])
        return kept

    def _append(self, rows: Tensor, newest: Tensor) -> Tensor:
        """Write each row's newest token behind its others."""
        if self._has_equal_lengths:
            rows[:, :, self._longest - 1] = newest
        else:
            rows[:, :, self._longest - 1] = 0  # what no row has written may not be NaN
            numbers = torch.arange(len(rows), device=rows.device)
            rows[numbers, :, self.position_ids] = newest
        return rows


def find_sources(
    rows: Int[Tensor, " chosen"], num_rows: int, num_sources: int
) -> Int[Tensor, " left"] | None:
    """The sources of some rows, each once; None where all are left.

    Args:
        rows: that are kept, those of a source as neighbors.
        num_rows: that there were, as many for each source.
        num_sources: that there were.
    """
    left = torch.unique_consecutive(rows // (num_rows // num_sources))
    return None if len(left) == num_sources else left
