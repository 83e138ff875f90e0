"""The pre-training heads, and the models that have them: masked LM and next sentence prediction.

Source: Devlin et al. 2018, section 3.1 and appendix A.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder, Pooler, build_norm
from bertkit.models.bert.pretrained import PaddingMask, PretrainedBert
from bertkit.models.bert.weights import initialize
from bertkit.nn.attention import TokenBatch
from bertkit.nn.block import ACTIVATIONS
from bertkit.nn.packing import PackedBatch, pad
from bertkit.nn.vocabulary_loss import vocabulary_loss


class PairQuestion(NamedTuple):
    """What a head decides about a pair of texts."""

    question: str
    choices: tuple[str, ...]  # in the order of the head's scores


class PairScoringBert(PretrainedBert):
    """Base of the models that have a next sentence head."""

    pair_question = PairQuestion(
        "whether the second text follows the first", ("follows", "doesn't follow")
    )
    encoder: BertEncoder
    pooler: Pooler
    next_sentence: nn.Linear

    def score_pairs(
        self, tokens: Float[Tensor, "tokens hidden"], batch: PackedBatch
    ) -> Float[Tensor, "sequences 2"]:
        """Return logits of "B follows A" (0) and "it doesn't" (1), given all hidden states."""
        relations: Tensor = self.next_sentence(self.pooler(tokens, batch))
        return relations


class MaskedLMHead(nn.Module):
    """The masked LM head, also used for next words; tied to the word embeddings."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        size = config.parts.embedding_size or config.hidden_size
        self.dense = nn.Linear(config.hidden_size, size, bias=config.parts.has_head_biases)
        self.activation = ACTIVATIONS[config.word_activation]
        self.norm = build_norm(config, size)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    @torch.no_grad()
    def start_at_frequencies(self, counts: Int[Tensor, " counted"]) -> None:
        """Set the bias to each token's log frequency, which an untrained head would learn first.

        There may be fewer counts than words. One is added to each, so that no frequency is 0.
        """
        occurrences = torch.ones_like(self.bias)
        occurrences[: len(counts)] += counts
        self.bias.copy_((occurrences / occurrences.sum()).log())

    def forward(
        self,
        tokens: Float[Tensor, "tokens hidden"],
        word_embeddings: Float[Tensor, "vocabulary features"],
    ) -> Float[Tensor, "tokens vocabulary"]:
        """Return logits of all words for each given token."""
        return F.linear(self.features(tokens), word_embeddings, self.bias)

    def features(self, tokens: Float[Tensor, "tokens hidden"]) -> Float[Tensor, "tokens features"]:
        """Transform hidden states into the vectors to be multiplied with the word embeddings."""
        normalized: Tensor = self.norm(self.activation(self.dense(tokens)))
        return normalized

    def loss(
        self,
        tokens: Float[Tensor, "tokens hidden"],
        word_embeddings: Float[Tensor, "vocabulary features"],
        labels: Int[Tensor, " tokens"],
        smoothing: float = 0.0,
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Return the sum of the cross-entropies, and the number of correct predictions."""
        features = self.features(tokens)
        return vocabulary_loss(features, word_embeddings, self.bias, labels, smoothing)


class WordScoringBert(PretrainedBert):
    """Base of the models that have an `encoder` and a `masked_lm` head."""

    predicts_pairs: ClassVar[bool] = False  # whether there is a next sentence head, too
    word_offset: ClassVar[int] = 0  # from a token to the one that its hidden state predicts
    direction: ClassVar[Mapping[str, bool]] = MappingProxyType({"is_decoder": False})  # of a config

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.encoder = BertEncoder(config)
        if self.predicts_pairs:
            self.pooler = Pooler(config)
        self.masked_lm = MaskedLMHead(config)
        if self.predicts_pairs:
            self.next_sentence = nn.Linear(config.hidden_size, 2)
        initialize(self, config)

    def forward_packed(self, batch: PackedBatch, mask: PaddingMask) -> Any:
        """Return logits of all words, `[batch, length, vocabulary]`, zeros at padding."""
        return pad(self.score_words(self.encoder(batch)), mask)

    def score_words(
        self, tokens: Float[Tensor, "tokens hidden"]
    ) -> Float[Tensor, "tokens vocabulary"]:
        """Return logits of all words for each given hidden state of the encoder."""
        scores: Tensor = self.masked_lm(tokens, self.encoder.embeddings.word.weight)
        return scores

    def words_loss(
        self, tokens: Float[Tensor, "tokens hidden"], labels: Int[Tensor, " tokens"]
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Return the sum of the cross-entropies, and the number of correct predictions.

        The hidden states are usually of masked tokens only, because the projection to the
        vocabulary is the largest product of a small model.
        """
        return self.masked_lm.loss(tokens, self.encoder.embeddings.word.weight, labels)

    def count_operations(self, batch: PackedBatch, num_predicted: int) -> float:
        """Count a training step's operations, as in `BertEncoder`, with `num_predicted` words."""
        dense, norm = self.masked_lm.dense, self.masked_lm.norm
        scores = norm.weight.numel() * self.config.vocab_size
        words = 6.0 * num_predicted * (dense.weight.numel() + scores)
        return self.encoder.count_operations(batch) + words


class BertForMaskedLM(WordScoringBert):
    """The encoder with the masked LM head."""

    def masked_loss(
        self,
        batch: PackedBatch,
        positions: Int[Tensor, " masked"],
        labels: Int[Tensor, " masked"],
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Like `words_loss`, at positions of the packed batch."""
        return self.words_loss(self.encoder(batch).index_select(0, positions), labels)


class BertForNextSentencePrediction(PairScoringBert):
    """The encoder with the next sentence prediction head."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.encoder = BertEncoder(config)
        self.pooler = Pooler(config)
        self.next_sentence = nn.Linear(config.hidden_size, 2)
        initialize(self, config)

    def pair_scores(self, batch: PackedBatch) -> Float[Tensor, "sequences 2"]:
        """Return logits of "B follows A" (0) and "it doesn't" (1)."""
        relations: Tensor = self.next_sentence(self.pooler.pool(self.encoder.summary_states(batch)))
        return relations

    def forward_packed(self, batch: PackedBatch, mask: PaddingMask) -> Float[Tensor, "batch 2"]:
        """Return `pair_scores`."""
        return self.pair_scores(batch)


@dataclass(frozen=True)
class PreTrainingOutput:
    """The output of `BertForPreTraining`, padded like its input."""

    # of all words at each position; zeros at padding
    prediction_logits: Float[Tensor, "batch length vocabulary"]
    seq_relationship_logits: Float[Tensor, "batch 2"]  # of "B follows A" (0) and "it doesn't" (1)


class BertForPreTraining(WordScoringBert, PairScoringBert):
    """The encoder with both pre-training heads: masked LM and next sentence prediction."""

    predicts_pairs = True

    def masked_loss_and_relations(
        self,
        batch: PackedBatch,
        positions: Int[Tensor, " masked"],
        labels: Int[Tensor, " masked"],
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""], Float[Tensor, "sequences 2"]]:
        """Like `words_loss`, at positions of the packed batch; plus the next sentence logits."""
        tokens = self.encoder(batch)
        loss, num_hits = self.words_loss(tokens.index_select(0, positions), labels)
        return loss, num_hits, self.score_pairs(tokens, batch)

    def count_operations(self, batch: PackedBatch, num_predicted: int) -> float:
        """Count a training step's operations, including pooler and next sentence head."""
        hidden = self.config.hidden_size
        pooling = 6.0 * len(batch.lengths) * hidden * (hidden + 2)
        return super().count_operations(batch, num_predicted) + pooling

    def forward_packed(self, batch: PackedBatch, mask: PaddingMask) -> PreTrainingOutput:
        """Return the logits of both heads."""
        tokens = self.encoder(batch)
        return PreTrainingOutput(
            pad(self.score_words(tokens), mask), self.score_pairs(tokens, batch)
        )


class BertLMHeadModel(WordScoringBert):
    """A left-to-right language model: predicts the next word at each token.

    Args:
        config: the sizes; `is_decoder` must be true.

    Raises:
        SettingsError: `is_decoder` is false.
    """

    direction = MappingProxyType({"is_decoder": True})
    word_offset = 1

    def next_scores(
        self, batch: TokenBatch, positions: Int[Tensor, " chosen"] | None = None
    ) -> Float[Tensor, "chosen vocabulary"]:
        """Return logits of the next word at these positions of the packed batch, or at all."""
        tokens = self.encoder(batch)
        return self.score_words(tokens if positions is None else tokens.index_select(0, positions))

    def next_loss(
        self,
        batch: PackedBatch,
        positions: Int[Tensor, " chosen"],
        labels: Int[Tensor, " chosen"],
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Return the sum of the cross-entropies, and the number of correct predictions."""
        return self.words_loss(self.encoder(batch).index_select(0, positions), labels)
