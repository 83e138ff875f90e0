"""The encoder as a CPU computes it fastest: prepared products, and sums in place."""

from collections.abc import Iterator

from jaxtyping import Float
from torch import Tensor

from bertkit.models.bert.encoder import BertEncoder
from bertkit.nn.attention import attend
from bertkit.nn.block import EncoderBlock
from bertkit.nn.packing import PackedBatch
from bertkit.nn.prepared_linear import PreparedLinear


class PreparedEncoder:
    """What `BertEncoder` computes in evaluation, within the rounding of float32.

    Args:
        encoder: its weights must pass `can_prepare`. Embeddings and norms stay its own; of the
            linear layers a second copy is held, and later changes of theirs aren't seen.
    """

    def __init__(self, encoder: BertEncoder) -> None:
        self._embeddings = encoder.embeddings
        self._blocks = [PreparedBlock(block) for block in encoder.layers]  # type: ignore[arg-type]

    def hidden_states(self, batch: PackedBatch) -> Iterator[Float[Tensor, "tokens hidden"]]:
        """What the embeddings give, then what each layer gives; in inference mode only."""
        tokens: Tensor = self._embeddings(batch)
        yield tokens
        for block in self._blocks:
            tokens = block(tokens, batch)
            yield tokens


class PreparedBlock:
    """One layer of the encoder."""

    def __init__(self, block: EncoderBlock) -> None:
        attention, feed_forward = block.attention, block.feed_forward
        self._num_heads = attention.num_heads
        self._query_key_value = PreparedLinear(attention.query_key_value)
        self._output = PreparedLinear(attention.output)
        self._up = PreparedLinear(feed_forward.up, feed_forward.activation)
        self._down = PreparedLinear(feed_forward.down)
        self._attention_norm = block.attention_norm
        self._feed_forward_norm = block.feed_forward_norm

    def __call__(
        self, tokens: Float[Tensor, "tokens hidden"], batch: PackedBatch
    ) -> Float[Tensor, "tokens hidden"]:
        """One layer up."""
        heads = self._query_key_value(tokens).view(len(tokens), 3, self._num_heads, -1)
        context = attend(heads, batch, dropout_rate=0.0)
        mixed = self._output(context.flatten(start_dim=1))
        tokens = self._attention_norm(mixed.add_(tokens))
        higher: Tensor = self._feed_forward_norm(self._down(self._up(tokens)).add_(tokens))
        return higher
