"""Multi-head attention of the tokens of one packed batch over those of another.

Source: Vaswani et al. 2017, section 3.2.3 ("encoder-decoder attention").
"""

from dataclasses import dataclass, field

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.nn.attention import attend_flash, attend_fused, attend_rows, uses_flash
from bertkit.nn.dropout import drop
from bertkit.nn.head_layout import HeadBlocks, lay_out_heads, length_mask
from bertkit.nn.packing import PackedBatch


@dataclass(frozen=True, eq=False)
class Memory:
    """What is read: the encoder's output, a sequence for each that is written.

    Attributes:
        tokens: of all sequences, end to end.
        batch: their borders.
        readers: the sequences that are written, as many.
    """

    tokens: Float[Tensor, "others hidden"]
    batch: PackedBatch
    readers: PackedBatch
    _placements: dict[int, HeadBlocks] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        assert len(self.batch.lengths) == len(self.readers.lengths), "each has one reader"

    def lay_out_heads(self, num_heads: int) -> HeadBlocks:
        """Keys and values in rows, grouped as the readers' are; found once, for all layers."""
        if num_heads not in self._placements:
            self._placements[num_heads] = lay_out_heads(
                self.batch.lengths, self.readers.groups, 2, num_heads, self.tokens.device
            )
        return self._placements[num_heads]


class CrossAttentionCache:
    """A memory that is read again and again: the KV cache of what is read.

    Keys and values of each layer are computed once; `KVCache` has those of what is written.

    Args:
        tokens: the encoder's output, sequences end to end.
        batch: their borders. Each is read by the same number of neighboring rows.

    Attributes:
        mask: where a sequence has a token; None where all are equally long.
    """

    def __init__(self, tokens: Float[Tensor, "others hidden"], batch: PackedBatch) -> None:
        self._tokens = tokens
        self._columns = length_mask(batch.lengths, tokens.device)
        is_padded = min(batch.lengths) < max(batch.lengths)
        self.mask: Bool[Tensor, "sequences longest"] | None = self._columns if is_padded else None
        self._cache: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def select(self, sequences: Int[Tensor, " chosen"]) -> None:
        """Keep some of the sequences, in this order; once all layers have read them."""
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
        """Of a layer, in rows."""
        if layer not in self._cache:
            heads = layer.keys_and_values(self._tokens)
            rows = heads.new_zeros(*self._columns.shape, *heads.shape[1:])
            rows[self._columns] = heads
            keys, values = rows.permute(2, 0, 3, 1, 4).contiguous()
            self._cache[layer] = (keys, values)
        return self._cache[layer]


class CrossAttention(nn.Module):
    """Each token gathers from all tokens of the sequence that belongs to its own.

    Args:
        hidden_size: features of a token; a multiple of `num_heads`.
        num_heads: attention heads, each of hidden_size / num_heads features.
        dropout_rate: probability with which an attention weight is dropped while training.
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
        """Attend, and mix the heads."""
        query: Tensor = self.query(tokens).view(len(tokens), self.num_heads, -1)
        rate = self.dropout_rate if self.training else 0.0
        if isinstance(memory, CrossAttentionCache):
            context = attend_cached(query, *memory.keys_and_values(self), memory.mask)
        else:
            context = attend_across(query, self.keys_and_values(memory.tokens), memory, rate)
        mixed: Tensor = self.output(context.flatten(start_dim=1))
        return mixed

    def keys_and_values(
        self, others: Float[Tensor, "others hidden"]
    ) -> Float[Tensor, "others 2 heads features"]:
        """What the tokens that are read can be found by (0), and what they give (1)."""
        heads: Tensor = self.key_value(others).view(len(others), 2, self.num_heads, -1)
        return heads


def attend_across(
    query: Float[Tensor, "tokens heads features"],
    key_value: Float[Tensor, "others 2 heads features"],
    memory: Memory,
    dropout_rate: float,
) -> Float[Tensor, "tokens heads features"]:
    """Attention of each sequence over its own of another packed batch, by the kernel that fits.

    Args:
        query: of the tokens that look.
        key_value: of those that are seen; 0 is the key, 1 the value.
        memory: the borders of both.
        dropout_rate: of the attention weights, as in `bertkit.nn.attention.attend`.
    """
    if uses_flash(query):
        key, value = key_value.unbind(dim=1)
        context = attend_flash(query, key, value, memory.readers, memory.batch)
        return drop(context, dropout_rate)
    num_heads = query.shape[1]
    readers, others = memory.readers.lay_out_heads(1, num_heads), memory.lay_out_heads(num_heads)
    contexts = [
        attend_rows(rows, key, value, mask, dropout_rate)
        for (rows,), (key, value), mask in zip(
            readers.spread(query), others.spread(key_value), others.masks, strict=True
        )
    ]
    return readers.gather(contexts)


def attend_cached(
    query: Float[Tensor, "rows heads features"],
    keys: Float[Tensor, "sequences heads longest features"],
    values: Float[Tensor, "sequences heads longest features"],
    mask: Bool[Tensor, "sequences longest"] | None,
) -> Float[Tensor, "rows heads features"]:
    """Attention of the newest tokens; all rows of a sequence look at the same memory at once."""
    by_sequence = query.view(len(keys), -1, *query.shape[1:]).transpose(1, 2)
    return attend_fused(by_sequence, keys, values, mask).transpose(1, 2).flatten(0, 1)
