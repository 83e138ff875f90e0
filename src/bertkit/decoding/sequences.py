"""The interface between a search and a model: next-token logits, selecting and extending rows."""

from typing import Protocol

from jaxtyping import Float, Int
from torch import Tensor


class Sequences(Protocol):
    """A batch of sequences that a model continues; at first one row for each source.

    In each step, a search calls `scores`, then optionally `select`, then `extend`.
    """

    def scores(self) -> Float[Tensor, "rows vocabulary"]:
        """Return the float32 logits of each row's next token, with one forward pass.

        The tensor must be new each time, because the search modifies it.
        """
        ...

    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Keep these rows, in this order; a row may occur more than once.

        Rows of a source stay adjacent, and all remaining sources have the same number of rows.
        """
        ...

    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Append a token to each row."""
        ...
