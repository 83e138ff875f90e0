"""What a search asks of a model: scores of the next token, rows that grow, rows that are kept."""

from typing import Protocol

from jaxtyping import Float, Int
from torch import Tensor


class Sequences(Protocol):
    """Sequences that a model goes on with, a row each; at first one row for each source.

    A search calls `scores`, then `select` or not, then `extend`, and again.
    """

    def scores(self) -> Float[Tensor, "rows vocabulary"]:
        """Unnormalized scores of each row's next token, in float32; one forward pass.

        A new tensor each time: the search writes into it.
        """
        ...

    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Keep these rows, in this order; a row may be there more than once.

        Rows of a source stay neighbors, and each source that is left has the same number.
        """
        ...

    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Add a token to each row."""
        ...
