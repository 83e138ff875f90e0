"""The BERT encoder: from token ids to a vector for each token (T_i) and for each sequence (C).

`BertEncoder` and `Pooler` work on packed batches. `BertModel` has the usual padded interface.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Self

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
from bertkit.nn.packing import PackedBatch, pad, reduce_tokens
from bertkit.nn.parts import BERT_HEAD, HeadParts
from bertkit.nn.relative import RelativeBias


class BertEncoder(nn.Module):
    """Embeddings, then a stack of blocks, whose parts are those of the config.

    With `is_decoder`, attention is causal.

    Attributes:
        recomputes: whether training keeps only the input of each block, and computes the block
            again in the backward pass, with the same dropout.

    Source of `recomputes`: Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost".
    """

    recomputes = False

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = build_embeddings(config)
        num_buckets, num_heads = config.parts.num_buckets, config.num_attention_heads
        self.relative_bias = RelativeBias(num_buckets, num_heads) if num_buckets else None
        self.layers = build_layers(config, EncoderBlock)
        self.final_norm = build_final_norm(config)

    def forward(self, batch: TokenBatch) -> Float[Tensor, "tokens hidden"]:
        """Return T_i, the final hidden state, for each token."""
        tokens, bias = self.embeddings(batch), self.find_bias(batch)
        recomputes = self.recomputes and self.training
        for layer in self.layers:
            inputs = (tokens, batch, None, bias)
            tokens = (
                checkpoint(layer, *inputs, use_reentrant=False) if recomputes else layer(*inputs)
            )
        normalized: Tensor = self.final_norm(tokens)
        return normalized

    def find_bias(self, batch: TokenBatch) -> Float[Tensor, "heads longest longest"] | None:
        """Return what all layers add to the scores of each sequence."""
        if self.relative_bias is None:
            return None
        assert isinstance(batch, PackedBatch), "no decoder has relative positions"
        bias: Tensor = self.relative_bias(max(batch.lengths))
        return bias

    def summary_states(self, batch: PackedBatch) -> Float[Tensor, "sequences hidden"]:
        """Return the final states of `summary_tokens` only; the last layer skips the others."""
        tokens, bias = self.embeddings(batch), self.find_bias(batch)
        for layer in self.layers[:-1]:
            tokens = layer(tokens, batch, None, bias)
        kept = summary_tokens(self.config, batch)
        summaries: Tensor = self.final_norm(self.layers[-1](tokens, batch, kept, bias))
        return summaries

    def hidden_states(
        self, batch: PackedBatch, embedded: Float[Tensor, "tokens hidden"] | None = None
    ) -> Iterator[Float[Tensor, "tokens hidden"]]:
        """Yield the embeddings, or those given, then each layer's states; the last are T_i."""
        tokens = self.embeddings(batch) if embedded is None else embedded
        bias = self.find_bias(batch)
        yield tokens
        for layer in self.layers:
            tokens = layer(tokens, batch, None, bias)
            yield self.final_norm(tokens) if layer is self.layers[-1] else tokens

    def count_operations(self, batch: PackedBatch, *, only_summaries: bool = False) -> float:
        """Count the floating-point operations of a training step's matrix products.

        A multiplication and an addition count as two; the backward pass, which frozen layers don't
        have, costs twice the forward. Norms and activations are left out; causal attention is
        counted as if it were bidirectional. A frozen matrix that passes gradients on costs once
        the forward pass, and a low-rank update is too small to count.
        """
        hidden, total = self.config.hidden_size, 0.0
        for layer in self.layers:
            assert isinstance(layer, EncoderBlock)
            trained = {name for name, each in layer.named_parameters() if each.requires_grad}
            passes = 1 + bool(trained) + ("feed_forward.up.weight" in trained)
            is_cut = only_summaries and layer is self.layers[-1]
            num_outputs = len(batch.lengths) if is_cut else batch.num_tokens
            reach = math.inf if (window := layer.attention.window) is None else 2 * window + 1
            pairs = sum(length * min(length, reach) for length in batch.lengths)
            inner = layer.feed_forward.up.weight.numel() + layer.feed_forward.down.weight.numel()
            products = 3 * batch.num_tokens * hidden * hidden + 2 * hidden * pairs
            total += 2.0 * passes * (products + num_outputs * (hidden * hidden + inner))
        return total


def build_embeddings(config: BertConfig) -> Embeddings:
    """Build the embeddings of a config's sizes."""
    return Embeddings(
        vocab_size=config.vocab_size,
        num_positions=config.max_position_embeddings,
        num_segments=config.type_vocab_size,
        hidden_size=config.hidden_size,
        layer_norm_epsilon=config.layer_norm_eps,
        dropout_rate=config.dropout_rates["embeddings"],
        parts=config.parts,
    )


def build_layers(config: BertConfig, block: type[Block]) -> nn.ModuleList:
    """Build the blocks of a config's sizes and parts; attention is causal if it says so."""
    size, parts = config.hidden_size, config.parts
    layers = nn.ModuleList(
        block(
            attention=SelfAttention(
                size,
                config.num_attention_heads,
                config.attention_probs_dropout_prob,
                is_causal=config.is_decoder,
                window=parts.find_window(number),
                rotary_base=parts.find_rotary_base(number),
                has_bias=parts.has_biases,
            ),
            feed_forward=FeedForward(
                size,
                config.intermediate_size,
                config.hidden_act,
                dropout_rate=config.dropout_rates["inner"],
                parts=parts,
            ),
            hidden_size=size,
            layer_norm_epsilon=config.layer_norm_eps,
            dropout_rates=config.dropout_rates,
            parts=parts,
        )
        for number in range(config.num_hidden_layers)
    )
    if not parts.has_first_norm:
        for first in layers[:1]:
            first.attention_norm = nn.Identity()
    return layers


def build_final_norm(config: BertConfig) -> nn.Module:
    """Build the layer norm behind the last block, or nothing if blocks end with theirs."""
    if not config.parts.normalizes_first:
        return nn.Identity()
    return build_norm(config, config.hidden_size)


def build_norm(config: BertConfig, size: int) -> nn.LayerNorm:
    """Build a layer norm."""
    return nn.LayerNorm(size, eps=config.layer_norm_eps, bias=config.parts.has_biases)


def summary_tokens(config: BertConfig, batch: PackedBatch) -> Int[Tensor, " sequences"]:
    """Return the index of each sequence's summary token: the first, [CLS]; if causal, the last.

    With causal attention, [CLS] sees only itself, and the last token, [SEP], sees everything.
    """
    return batch.last_tokens if config.is_decoder else batch.first_tokens


class Pooler(nn.Module):
    """Computes C: the state of each sequence's summary token ([CLS]), a dense layer and tanh.

    Heads of other families have another activation or a layer norm, or read the mean of the tokens.

    Args:
        config: the sizes.
        parts: what the head has.
        dropout_rate: before the dense layer.
    """

    def __init__(
        self, config: BertConfig, parts: HeadParts = BERT_HEAD, dropout_rate: float = 0.0
    ) -> None:
        super().__init__()
        self.config, self.reads_mean = config, parts.pooling == "mean"
        size = config.hidden_size
        self.dropout = Dropout(dropout_rate)
        self.dense = nn.Linear(size, size, bias=config.parts.has_head_biases)
        self.activation = ACTIVATIONS[parts.activation]
        self.norm = build_norm(config, size) if parts.has_norm else nn.Identity()

    def forward(
        self, tokens: Float[Tensor, "tokens hidden"], batch: PackedBatch
    ) -> Float[Tensor, "sequences hidden"]:
        """Return C for each sequence of the batch."""
        if self.reads_mean:
            return self.pool(reduce_tokens(tokens, batch, "mean"))
        return self.pool(tokens[summary_tokens(self.config, batch)])

    def read(self, encoder: BertEncoder, batch: PackedBatch) -> Float[Tensor, "sequences hidden"]:
        """Return C for each sequence, with as little of the encoder's last layer as it needs."""
        if self.reads_mean:
            return self.forward(encoder(batch), batch)
        return self.pool(encoder.summary_states(batch))

    def pool(self, states: Float[Tensor, "rows hidden"]) -> Float[Tensor, "rows hidden"]:
        """Return C from the states of the summary tokens."""
        pooled: Tensor = self.norm(self.activation(self.dense(self.dropout(states))))
        return pooled


def build_pooler(config: BertConfig, architecture: str) -> Pooler | None:
    """Build what the head of a class has before its last layer; None if it has nothing."""
    parts = config.find_head(architecture)
    if parts is None:
        return None
    rate = config.find_dropout(architecture) if parts.drops_first else 0.0
    return Pooler(config, parts, rate)


def build_dropout(config: BertConfig, architecture: str) -> Dropout:
    """Build the dropout before the last layer of a class, with the same rate as in transformers."""
    return Dropout(config.find_dropout(architecture))


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
        self.pooler = build_pooler(config, type(self).__name__) if has_pooler else None
        initialize(self, config)

    def forward_packed(self, batch: PackedBatch, mask: PaddingMask) -> BertOutput:
        """Return C, and T_i of all tokens."""
        tokens = self.encoder(batch)
        pooled = None if self.pooler is None else self.pooler(tokens, batch)
        return BertOutput(pad(tokens, mask), pooled)

    @classmethod
    def _for_heads(cls, config: BertConfig, heads: Collection[str]) -> Self:
        return cls(config, has_pooler="pooler" in heads)
