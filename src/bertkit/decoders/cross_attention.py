"""Cross-attention: the decoder's tokens attend to the encoder's output.

Source: Vaswani et al. 2017, section 3.2.3 ("encoder-decoder attention").
"""

from dataclasses import dataclass, field

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.nn.dropout import drop
from bertkit.nn.head_blocks import HeadBlocks, lay_out_heads, length_mask
from bertkit.nn.kernels import attend_flash, attend_fused, attend_rows, uses_flash
from bertkit.nn.packing import PackedBatch


@dataclass(frozen=True, eq=False)
class Memory:
    """The encoder's output, with one source sequence for each target sequence."""

    tokens: Float[Tensor, "others hidden"]  # the encoder's states, source sequences end to end
    batch: PackedBatch
    readers: PackedBatch  # the target sequences, as many
    _head_blocks: dict[int, HeadBlocks] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        assert len(self.batch.lengths) == len(self.readers.lengths), "each has one reader"

    def lay_out_heads(self, num_heads: int) -> HeadBlocks:
        """Lay out keys and values in the readers' groups; computed once for all layers."""
        if num_heads not in self._head_blocks:
            self._head_blocks[num_heads] = lay_out_heads(
                self.batch.lengths, self.readers.groups, 2, num_heads, self.tokens.device
            )
        return self._head_blocks[num_heads]

    def attend(
        self, query: Float[Tensor, "tokens heads features"], layer: "CrossAttention"
    ) -> Float[Tensor, "tokens heads features"]:
        """Attend from each target sequence to its source, with the fastest kernel that applies."""
        key_value = layer.keys_and_values(self.tokens)
        rate = layer.dropout_rate if layer.training else 0.0
        if uses_flash(query):
            key, value = key_value.unbind(dim=1)
            offsets = (self.readers.offsets, self.batch.offsets)
            longest = (max(self.readers.lengths), max(self.batch.lengths))
            return drop(attend_flash(query, key, value, offsets, longest), rate)
        readers = self.readers.lay_out_heads(1, layer.num_heads)
        others = self.lay_out_heads(layer.num_heads)
        contexts = [
            attend_rows(rows, key, value, mask, rate)
            for (rows,), (key, value), mask in zip(
                readers.scatter(query), others.scatter(key_value), others.masks, strict=True
            )
        ]
        return readers.gather(contexts)


class CrossAttentionCache:
    """The KV cache of cross-attention, for generating.

    Each layer's keys and values of the source are computed once; `KVCache` has the target's.

    Args:
        batch: the source sequences; each has the same number of adjacent target rows.

    Attributes:
        mask: True at tokens, False at padding; None if all sequences are equally long.
    """

    def __init__(self, tokens: Float[Tensor, "others hidden"], batch: PackedBatch) -> None:
        self._tokens = tokens
        self._columns = length_mask(batch.lengths, tokens.device)
        is_padded = min(batch.lengths) < max(batch.lengths)
        self.mask: Bool[Tensor, "sequences longest"] | None = self._columns if is_padded else None
        self._cache: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def select(self, sequences: Int[Tensor, " chosen"]) -> None:
        """Keep these source sequences, in this order; call it after each layer has run once."""
        assert self._cache, "sequences are read before some are chosen"
        self._cache = {
            layer: (keys.index_select(0, sequences), values.index_select(0, sequences))
            for layer, (keys, values) in self._cache.items()
        }
        self.mask = None if self.mask is None else self.mask.index_select(0, sequences)

    def keys_and_values(
        self, layer: "CrossAttention"
    ) -> tuple[
        Float[Tensor, "sequences heads longest features"],
        Float[Tensor, "sequences heads longest features"],
    ]:
        """Return a layer's keys and values in padded rows, computed at the first call."""
        if layer not in self._cache:
            heads = layer.keys_and_values(self._tokens)
            rows = heads.new_zeros(*self._columns.shape, *heads.shape[1:])
            rows[self._columns] = heads
            keys, values = rows.permute(2, 0, 3, 1, 4).contiguous()
            self._cache[layer] = (keys, values)
        return self._cache[layer]

    def attend(
        self, query: Float[Tensor, "rows heads features"], layer: "CrossAttention"
    ) -> Float[Tensor, "rows heads features"]:
        """Attend from the newest tokens; all rows of a source share its keys and values."""
        keys, values = self.keys_and_values(layer)
        by_sequence = query.view(len(keys), -1, *query.shape[1:]).transpose(1, 2)
        return attend_fused(by_sequence, keys, values, self.mask).transpose(1, 2).flatten(0, 1)


class CrossAttention(nn.Module):
    """Multi-head attention of each target token to all tokens of its source sequence.

    Args:
        dropout_rate: dropout on the attention weights.
    """

    def __init__(self, hidden_size: int, num_heads: int, dropout_rate: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.dropout_rate = dropout_rate
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key_value = nn.Linear(hidden_size, 2 * hidden_size)
        self.output = nn.Linear(hidden_size, hidden_size)

    def forward(
        self,
        tokens: Float[Tensor, "tokens hidden"],
        memory: Memory | CrossAttentionCache,
    ) -> Float[Tensor, "tokens hidden"]:
        """Attend, then concatenate and project the heads."""
        query: Tensor = self.query(tokens).view(len(tokens), self.num_heads, -1)
        mixed: Tensor = self.output(memory.attend(query, self).flatten(start_dim=1))
        return mixed

    def keys_and_values(
        self, others: Float[Tensor, "others hidden"]
    ) -> Float[Tensor, "others 2 heads features"]:
        """Project the encoder's output to keys (0) and values (1)."""
        heads: Tensor = self.key_value(others).view(len(others), 2, self.num_heads, -1)
        return heads
