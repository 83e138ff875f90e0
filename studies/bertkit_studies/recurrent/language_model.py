"""A recurrent language model that predicts the next word and, if bidirectional, the previous one.

Source: Peters et al. 2018, "Deep contextualized word representations", section 3.1; tied
embeddings: Press and Wolf 2016, "Using the Output Embedding to Improve Language Models".
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from bertkit.nn.packing import PackedBatch
from bertkit.nn.vocabulary_loss import vocabulary_loss
from bertkit_studies.recurrent.config import LanguageModelConfig
from bertkit_studies.recurrent.net import SavedNet, count_weights
from bertkit_studies.recurrent.reader import Reader


class RecurrentLanguageModel(SavedNet):
    """A left-to-right language model and, if bidirectional, a right-to-left one.

    Both share the word embeddings and biases.

    Args:
        config: the sizes.
    """

    config_kind = LanguageModelConfig
    config: LanguageModelConfig

    def __init__(self, config: LanguageModelConfig) -> None:
        super().__init__(config)
        self.reader = Reader(config)
        self.next_word = nn.Linear(config.hidden_size, config.embedding_size)
        self.previous_word = None
        if config.is_bidirectional:
            self.previous_word = nn.Linear(config.hidden_size, config.embedding_size)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def next_scores(
        self, batch: PackedBatch, positions: Int[Tensor, " chosen"] | None = None
    ) -> Float[Tensor, "chosen vocabulary"]:
        """Return logits of the next word at these positions of the packed batch, or at all."""
        states = self.reader.read_forward(batch)
        chosen = states if positions is None else states.index_select(0, positions)
        return F.linear(self.next_word(chosen), self.reader.embeddings.weight, self.bias)

    def next_loss(
        self,
        batch: PackedBatch,
        positions: Int[Tensor, " chosen"],
        labels: Int[Tensor, " chosen"],
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Return the sum of the cross-entropies, and the number of correct predictions."""
        states = self.reader.read_forward(batch).index_select(0, positions)
        features = self.next_word(states)
        return vocabulary_loss(features, self.reader.embeddings.weight, self.bias, labels)

    def previous_loss(
        self,
        batch: PackedBatch,
        positions: Int[Tensor, " chosen"],
        labels: Int[Tensor, " chosen"],
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Like `next_loss`, for the word before each position, predicted right to left."""
        assert self.previous_word is not None, "a net of one direction predicts next words"
        states = self.reader.read_backward(batch).index_select(0, positions)
        features = self.previous_word(states)
        return vocabulary_loss(features, self.reader.embeddings.weight, self.bias, labels)

    def count_operations(self, batch: PackedBatch, num_predicted: int) -> float:
        """Count the floating-point operations of a training step's matrix products.

        A multiplication and an addition count as two; the backward pass costs twice the forward.

        Args:
            batch: the input.
            num_predicted: number of predicted words, in each direction.
        """
        heads = [head for head in (self.next_word, self.previous_word) if head is not None]
        scoring = len(heads) * self.reader.embeddings.weight.numel() + count_weights(*heads)
        return 6.0 * (batch.num_tokens * self.reader.count_weights() + num_predicted * scoring)
