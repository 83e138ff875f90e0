"""Skip-thought: sentence vectors, learned by predicting the previous and the next sentence.

Source: Kiros et al. 2015, "Skip-Thought Vectors", section 2. The paper's decoder adds the sentence
vector in each gate; concatenating it to each input word, as here, computes the same.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from bertkit.nn.dropout import Dropout
from bertkit.nn.packing import PackedBatch
from bertkit.nn.vocabulary_loss import vocabulary_loss
from bertkit_studies.recurrent.config import SkipThoughtConfig
from bertkit_studies.recurrent.net import SavedNet, count_weights, draw_embeddings
from bertkit_studies.recurrent.packed_nets import run_net

Side = Literal["before", "after"]


class SkipThought(SavedNet):
    """A GRU that encodes a sentence, and two that decode the previous and the next sentence.

    Args:
        config: the sizes.
    """

    config_kind = SkipThoughtConfig
    config: SkipThoughtConfig

    def __init__(self, config: SkipThoughtConfig) -> None:
        super().__init__(config)
        num_inputs = config.embedding_size + config.hidden_size
        self.embeddings = draw_embeddings(config.vocab_size, config.embedding_size)
        self.encoder = nn.GRU(config.embedding_size, config.hidden_size)
        self.writers = nn.ModuleDict(
            {side: nn.GRU(num_inputs, config.hidden_size) for side in ("before", "after")}
        )
        self.word = nn.Linear(config.hidden_size, config.embedding_size)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.dropout = Dropout(config.dropout)

    def encode(self, batch: PackedBatch) -> Float[Tensor, "sequences hidden"]:
        """Return the vector of each sentence: the state after its last token."""
        states = run_net(self.encoder, self._embed(batch), batch.lengths)
        return states.index_select(0, batch.last_tokens)

    def neighbor_loss(
        self,
        side: Side,
        vectors: Float[Tensor, "sequences hidden"],
        written: PackedBatch,
        labels: Int[Tensor, " tokens"],
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Return a neighbor's sum of cross-entropies, and the number of correct predictions.

        Args:
            side: whether the neighbor is the previous or the next sentence.
            vectors: of the middle sentences.
            written: the decoder's input for each neighbor: [CLS], then all labels but the last.
            labels: the word after each token of `written`.
        """
        lengths = torch.tensor(written.lengths, device=vectors.device)
        known = vectors.repeat_interleave(lengths, dim=0)
        inputs = torch.cat([self._embed(written), known], dim=1)
        states = self.dropout(run_net(self.writers[side], inputs, written.lengths))  # type: ignore[arg-type]
        return vocabulary_loss(self.word(states), self.embeddings.weight, self.bias, labels)

    def _embed(self, batch: PackedBatch) -> Float[Tensor, "tokens embedding"]:
        embedded: Tensor = self.dropout(self.embeddings(batch.input_ids))
        return embedded

    def count_operations(self, middle: PackedBatch, *neighbors: PackedBatch) -> float:
        """Count a training step's operations, as in `RecurrentLanguageModel`."""
        num_written = sum(batch.num_tokens for batch in neighbors)
        writing = count_weights(self.writers["before"], self.word) + self.embeddings.weight.numel()
        return 6.0 * (middle.num_tokens * count_weights(self.encoder) + num_written * writing)
