"""The BERT encoder: from token ids to a vector for each token (T_i) and for each sequence (C).

`BertEncoder` and `Pooler` work on packed batches. `BertModel` has the usual padded interface.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.pretrained import PaddingMask, PretrainedBert
from bertkit.models.bert.weights import initialize
from bertkit.nn.attention import SelfAttention, TokenBatch
from bertkit.nn.block import ACTIVATIONS, Block, EncoderBlock, FeedForward
from bertkit.nn.dropout import Dropout
from bertkit.nn.embeddings import Embeddings
from bertkit.nn.packing import PackedBatch, pad
from bertkit.nn.parts import BERT_HEAD, HeadParts


class BertEncoder(nn.Module):
    """Embeddings, then a stack of identical blocks; with `is_decoder`, attention is causal.

    Attributes:
        recomputes: whether training keeps only the input of each block, and computes the block
            again in the backward pass, with the same dropout.

    Source of `recomputes`: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost".
    """

    block: ClassVar[type[EncoderBlock]] = EncoderBlock
    recomputes = False

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = build_embeddings(config)
        self.layers = build_layers(config, self.block)

    def forward(self, batch: TokenBatch) -> Float[Tensor, "tokens hidden"]:
        """Return T_i, the final hidden state, for each token."""
        tokens: Tensor = self.embeddings(batch)
        for layer in self.layers:
            tokens = self._compute(layer, tokens, batch)
        return tokens

    def _compute(
        self, layer: nn.Module, tokens: Float[Tensor, "tokens hidden"], batch: TokenBatch
    ) -> Float[Tensor, "tokens hidden"]:
        computed: Tensor
        if self.recomputes and self.training:
            computed = checkpoint(layer, tokens, batch, use_reentrant=False)
        else:
            computed = layer(tokens, batch)
        return computed

    def summary_states(self, batch: PackedBatch) -> Float[Tensor, "sequences hidden"]:
        """Return the final states of `summary_tokens` only; the last layer skips the others."""
        tokens: Tensor = self.embeddings(batch)
        for layer in self.layers[:-1]:
            tokens = layer(tokens, batch)
        summaries: Tensor = self.layers[-1](tokens, batch, summary_tokens(self.config, batch))
        return summaries

    def hidden_states(self, batch: PackedBatch) -> Iterator[Float[Tensor, "tokens hidden"]]:
        """Yield the embeddings, then each layer's hidden states; the last are T_i."""
        tokens: Tensor = self.embeddings(batch)
        yield tokens
        for layer in self.layers:
            tokens = layer(tokens, batch)
            yield tokens

    def count_operations(self, batch: PackedBatch, *, only_summaries: bool = False) -> float:
        """Count the floating-point operations of a training step's matrix products.

        A multiplication and an addition count as two; the backward pass, which frozen layers don't
        have, costs twice the forward. Norms and activations are left out; causal attention is
        counted as if it were bidirectional. A frozen matrix that passes gradients on costs once
        the forward pass, and a low-rank update is too small to count.
        """
        hidden, inner = self.config.hidden_size, self.config.intermediate_size
        squares = sum(length * length for length in batch.lengths)
        attention = batch.num_tokens * 3 * hidden * hidden + 2 * hidden * squares
        total = 0.0
        for layer in self.layers:
            trained = {name for name, each in layer.named_parameters() if each.requires_grad}
            passes = 1 + bool(trained) + ("feed_forward.up.weight" in trained)
            is_cut = only_summaries and layer is self.layers[-1]
            num_outputs = len(batch.lengths) if is_cut else batch.num_tokens
            products = attention + num_outputs * (hidden * hidden + 2 * hidden * inner)
            total += 2.0 * passes * products
        return total


def build_embeddings(config: BertConfig) -> Embeddings:
    """Build the embeddings of a config's sizes."""
    return Embeddings(
        vocab_size=config.vocab_size,
        num_positions=config.max_position_embeddings,
        num_segments=config.type_vocab_size,
        hidden_size=config.hidden_size,
        layer_norm_epsilon=config.layer_norm_eps,
        dropout_rate=config.hidden_dropout_prob,
        parts=config.parts,
    )


def build_layers(config: BertConfig, block: type[Block]) -> nn.ModuleList:
    """Build the blocks of a config's sizes; attention is causal if it says so."""
    size = config.hidden_size
    return nn.ModuleList(
        block(
            attention=SelfAttention(
                size,
                config.num_attention_heads,
                config.attention_probs_dropout_prob,
                is_causal=config.is_decoder,
            ),
            feed_forward=FeedForward(size, config.intermediate_size, config.hidden_act),
            hidden_size=size,
            layer_norm_epsilon=config.layer_norm_eps,
            dropout_rate=config.hidden_dropout_prob,
        )
        for _ in range(config.num_hidden_layers)
    )


def summary_tokens(config: BertConfig, batch: PackedBatch) -> Int[Tensor, " sequences"]:
    """Return the index of each sequence's summary token: the first, [CLS]; if causal, the last.

    With causal attention, [CLS] sees only itself, and the last token, [SEP], sees everything.
    """
    return batch.last_tokens if config.is_decoder else batch.first_tokens


class Pooler(nn.Module):
    """Computes C: the state of each sequence's summary token ([CLS]), a dense layer and tanh.

    Args:
        config: the sizes.
        parts: what heads of other families have.
    """

    def __init__(self, config: BertConfig, parts: HeadParts = BERT_HEAD) -> None:
        super().__init__()
        self.config = config
        self.dropout = classifier_dropout(config) if parts.drops_first else None
        self.dense = nn.Linear(config.hidden_size, config.hidden_size, bias=parts.has_bias)
        self.activation = ACTIVATIONS[parts.activation]

    def forward(
        self, tokens: Float[Tensor, "tokens hidden"], batch: PackedBatch
    ) -> Float[Tensor, "sequences hidden"]:
        """Return C for each sequence of the batch."""
        return self.pool(tokens[summary_tokens(self.config, batch)])

    def pool(
        self, summaries: Float[Tensor, "sequences hidden"]
    ) -> Float[Tensor, "sequences hidden"]:
        """Return C from the states of the summary tokens."""
        read = summaries if self.dropout is None else self.dropout(summaries)
        pooled: Tensor = self.activation(self.dense(read))
        return pooled


def classifier_dropout(config: BertConfig) -> Dropout:
    """Build the dropout before a classifier, with the same rate as in transformers."""
    rate = config.classifier_dropout
    return Dropout(config.hidden_dropout_prob if rate is None else rate)


@dataclass(frozen=True)
class BertOutput:
    """The output of `BertModel`, padded like its input."""

    last_hidden_state: Float[Tensor, "batch length hidden"]  # T_i; zeros at padding
    pooler_output: Float[Tensor, "batch hidden"] | None  # C; None if the model has no pooler


class BertModel(PretrainedBert):
    """BERT's encoder and pooler; calling it with a padded batch returns a `BertOutput`.

    Args:
        config: the sizes.
        has_pooler: whether to add a pooler; `from_pretrained` adds one if the checkpoint has it.
    """

    def __init__(self, config: BertConfig, *, has_pooler: bool = True) -> None:
        super().__init__(config)
        self.encoder = BertEncoder(config)
        head = config.find_head(type(self).__name__)
        self.pooler = Pooler(config, head) if has_pooler else None
        initialize(self, config.initializer_range)

    def forward_packed(self, batch: PackedBatch, mask: PaddingMask) -> BertOutput:
        """Return C, and T_i of all tokens."""
        tokens = self.encoder(batch)
        pooled = None if self.pooler is None else self.pooler(tokens, batch)
        return BertOutput(pad(tokens, mask), pooled)

    @classmethod
    def _for_heads(cls, config: BertConfig, heads: Collection[str]) -> Self:
        return cls(config, has_pooler="pooler" in heads)
