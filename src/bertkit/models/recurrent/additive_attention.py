"""Attention whose scores are computed by a small net of one hidden layer.

Source: Bahdanau et al. 2014, "Neural Machine Translation by Jointly Learning to Align and
Translate", section 3.1 and appendix A.1.2.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Annotations:
    """What is read, a row a sequence.

    Attributes:
        states: the encoder's, both directions; zeros behind a sequence's end.
        keys: what is compared with the reader's state.
        mask: where a sequence has a token.
    """

    states: Float[Tensor, "sequences longest features"]
    keys: Float[Tensor, "sequences longest attention"]
    mask: Bool[Tensor, "sequences longest"]

    def first(self, count: int) -> "Annotations":
        """Those of the first sequences."""
        if count == len(self.mask):
            return self
        return replace(
            self, states=self.states[:count], keys=self.keys[:count], mask=self.mask[:count]
        )

    def select(self, sequences: Int[Tensor, " chosen"]) -> "Annotations":
        """Those of some sequences, in this order."""
        return Annotations(
            self.states.index_select(0, sequences),
            self.keys.index_select(0, sequences),
            self.mask.index_select(0, sequences),
        )


class AdditiveAttention(nn.Module):
    """Scores v · tanh(W s + U h), made shares that add up to 1.

    Args:
        query_size: features of s, the state of what writes.
        memory_size: features of h, the states of what is read.
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
        """Gather from what is read.

        Args:
            query: states of what writes; each sequence has the same number of neighboring rows.
            memory: what is read.

        Returns:
            What each row gathers, and its shares.
        """
        num_sequences, longest = memory.mask.shape
        queries = self.query(query).view(num_sequences, -1, 1, self.query.out_features)
        scores = self.score(torch.tanh(queries + memory.keys[:, None]))[..., 0]
        shares = scores.masked_fill(~memory.mask[:, None], -torch.inf).softmax(dim=-1)
        contexts = shares @ memory.states
        return contexts.flatten(0, 1), shares.view(len(query), longest)
