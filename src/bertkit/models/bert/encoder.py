"""The BERT encoder: from token ids to a vector for each token (T_i) and for each sequence (C).

`BertEncoder` and `Pooler` work on packed batches. `BertModel` has the usual padded interface.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from bertkit.base.errors import InputError
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.pretrained import PretrainedBert
from bertkit.models.bert.weights import initialize
from bertkit.nn.attention import SelfAttention, TokenBatch
from bertkit.nn.block import EncoderBlock, FeedForward
from bertkit.nn.embeddings import Embeddings
from bertkit.nn.packing import PackedBatch, pad


class BertEncoder(nn.Module):
    """Embeddings, then a stack of identical blocks; with `is_decoder`, attention is causal."""

    block: ClassVar[type[EncoderBlock]] = EncoderBlock

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = build_embeddings(config)
        self.layers = nn.ModuleList(
            self.block(
                build_attention(config),
                build_feed_forward(config),
                hidden_size=config.hidden_size,
                layer_norm_epsilon=config.layer_norm_eps,
                dropout_rate=config.hidden_dropout_prob,
            )
            for _ in range(config.num_hidden_layers)
        )

    def forward(self, batch: TokenBatch) -> Float[Tensor, "tokens hidden"]:
        """Return T_i, the final hidden state, for each token."""
        tokens: Tensor = self.embeddings(batch)
        for layer in self.layers:
            tokens = layer(tokens, batch)
        return tokens

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


def build_embeddings(config: BertConfig) -> Embeddings:
    """Build the embeddings of a config's sizes."""
    return Embeddings(
        vocab_size=config.vocab_size,
        num_positions=config.max_position_embeddings,
        num_segments=config.type_vocab_size,
        hidden_size=config.hidden_size,
        layer_norm_epsilon=config.layer_norm_eps,
        dropout_rate=config.hidden_dropout_prob,
    )


def build_attention(config: BertConfig) -> SelfAttention:
    """Build self-attention of a config's sizes, causal if it says so."""
    return SelfAttention(
        config.hidden_size,
        config.num_attention_heads,
        config.attention_probs_dropout_prob,
        is_causal=config.is_decoder,
    )


def build_feed_forward(config: BertConfig) -> FeedForward:
    """Build the feed-forward network of a config's sizes."""
    return FeedForward(config.hidden_size, config.intermediate_size, config.hidden_act)


def summary_tokens(config: BertConfig, batch: PackedBatch) -> Int[Tensor, " sequences"]:
    """Return the index of each sequence's summary token: the first, [CLS]; if causal, the last.

    With causal attention, [CLS] sees only itself, and the last token, [SEP], sees everything.
    """
    return batch.last_tokens if config.is_decoder else batch.first_tokens


class Pooler(nn.Module):
    """Computes C: the state of each sequence's summary token ([CLS]), a dense layer and tanh."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(
        self, tokens: Float[Tensor, "tokens hidden"], batch: PackedBatch
    ) -> Float[Tensor, "sequences hidden"]:
        """Return C for each sequence of the batch."""
        return self.pool(tokens[summary_tokens(self.config, batch)])

    def pool(
        self, summaries: Float[Tensor, "sequences hidden"]
    ) -> Float[Tensor, "sequences hidden"]:
        """Return C from the states of the summary tokens."""
        pooled: Tensor = self.dense(summaries).tanh()
        return pooled


@dataclass(frozen=True)
class BertOutput:
    """The output of `BertModel`, padded like its input.

    Attributes:
        last_hidden_state: T_i; zeros at padding.
        pooler_output: C; None if the model has no pooler.
    """

    last_hidden_state: Float[Tensor, "batch length hidden"]
    pooler_output: Float[Tensor, "batch hidden"] | None


class BertModel(PretrainedBert):
    """BERT's encoder and pooler, with the padded interface.

    Args:
        config: the sizes.
        has_pooler: whether to add a pooler; `from_pretrained` adds one if the checkpoint has it.
    """

    def __init__(self, config: BertConfig, *, has_pooler: bool = True) -> None:
        super().__init__(config)
        self.encoder = BertEncoder(config)
        self.pooler = Pooler(config) if has_pooler else None
        initialize(self, config.initializer_range)

    def forward(
        self,
        input_ids: Int[Tensor, "batch length"],
        token_type_ids: Int[Tensor, "batch length"] | None = None,
        attention_mask: Shaped[Tensor, "batch length"] | None = None,
    ) -> BertOutput:
        """Encode a padded batch.

        Args:
            input_ids: token ids.
            token_type_ids: 0 for segment A (the default), 1 for B.
            attention_mask: 0 or False at padding; by default, there is none.

        Raises:
            InputError: shapes differ, an id is out of range, or a row has no token.
        """
        batch, mask = pack_padded(self.config, input_ids, token_type_ids, attention_mask)
        tokens = self.encoder(batch)
        pooled = None if self.pooler is None else self.pooler(tokens, batch)
        return BertOutput(pad(tokens, mask), pooled)

    @classmethod
    def _for_heads(cls, config: BertConfig, heads: Collection[str]) -> Self:
        return cls(config, has_pooler="pooler" in heads)


def pack_padded(
    config: BertConfig,
    input_ids: Int[Tensor, "batch length"],
    token_type_ids: Int[Tensor, "batch length"] | None,
    attention_mask: Shaped[Tensor, "batch length"] | None,
) -> tuple[PackedBatch, Tensor]:
    """Check and pack a padded batch; also return its mask, [batch, length], True at tokens.

    Raises:
        InputError: shapes differ, an id is out of range, or a row has no token.
    """
    if input_ids.dim() != 2:
        raise InputError(f"input_ids must be [batch, length], and is {list(input_ids.shape)}")
    check_shapes(input_ids, token_type_ids, attention_mask)
    if token_type_ids is None:
        token_type_ids = torch.zeros_like(input_ids)
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    if input_ids.shape[1] > config.max_position_embeddings:
        raise InputError(
            f"{input_ids.shape[1]} tokens are more than this model's"
            f" {config.max_position_embeddings}; cut the text"
        )
    for name, ids, limit in (
        ("input_ids", input_ids, config.vocab_size),
        ("token_type_ids", token_type_ids, config.type_vocab_size),
    ):
        if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= limit):
            raise InputError(f"{name} must be from 0 to {limit - 1}")
    mask = mask.to(torch.bool)
    return PackedBatch.from_padded(input_ids, token_type_ids, mask), mask


def check_shapes(
    input_ids: Int[Tensor, " *shape"],
    token_type_ids: Int[Tensor, " *shape"] | None,
    attention_mask: Shaped[Tensor, " *shape"] | None,
) -> None:
    """Check that `token_type_ids` and `attention_mask` have the shape of `input_ids`.

    Raises:
        InputError: shapes differ.
    """
    for name, other in (("token_type_ids", token_type_ids), ("attention_mask", attention_mask)):
        if other is not None and other.shape != input_ids.shape:
            raise InputError(
                f"{name} is {list(other.shape)} and must be {list(input_ids.shape)}, as input_ids"
            )
