"""Additive attention: a network with one hidden layer computes the scores.

Source: Bahdanau et al. 2014, "Neural Machine Translation by Jointly Learning to Align and
Translate", section 3.1 and appendix A.1.2.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Annotations:
    """The encoder's annotations of the source, one padded row per sequence.

    Attributes:
        states: the encoder's states, both directions concatenated; zeros at padding.
        keys: projected states (U h), which are compared with the decoder's state.
        mask: True at tokens, False at padding.
    """

    states: Float[Tensor, "sequences longest features"]
    keys: Float[Tensor, "sequences longest attention"]
    mask: Bool[Tensor, "sequences longest"]

    def first(self, count: int) -> "Annotations":
        """Return the annotations of the first sequences."""
        if count == len(self.mask):
            return self
        return replace(
            self, states=self.states[:count], keys=self.keys[:count], mask=self.mask[:count]
        )

    def select(self, sequences: Int[Tensor, " chosen"]) -> "Annotations":
        """Return the annotations of these sequences, in this order."""
        return Annotations(
            self.states.index_select(0, sequences),
            self.keys.index_select(0, sequences),
            self.mask.index_select(0, sequences),
        )


class AdditiveAttention(nn.Module):
    """Attention weights: the softmax of the scores v · tanh(W s + U h).

    Args:
        query_size: features of s, the decoder's state.
        memory_size: features of h, the encoder's states.
        attention_size: features of the hidden layer.
    """

    def __init__(self, query_size: int, memory_size: int, attention_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, attention_size, bias=False)
        self.key = nn.Linear(memory_size, attention_size, bias=False)
        self.score = nn.Linear(attention_size, 1, bias=False)

    def forward(
        self, query: Float[Tensor, "rows hidden"], memory: Annotations
    ) -> tuple[Float[Tensor, "rows features"], Float[Tensor, "rows longest"]]:
        """Attend to the encoder's states.

        Args:
            query: decoder states; each source sequence has the same number of adjacent rows.
            memory: the annotations of the source.

        Returns:
            The context vector of each row, and its attention weights.
        """
        num_sequences, longest = memory.mask.shape
        queries = self.query(query).view(num_sequences, -1, 1, self.query.out_features)
        scores = self.score(torch.tanh(queries + memory.keys[:, None]))[..., 0]
        shares = scores.masked_fill(~memory.mask[:, None], -torch.inf).softmax(dim=-1)
        contexts = shares @ memory.states
        return contexts.flatten(0, 1), shares.view(len(query), longest)
