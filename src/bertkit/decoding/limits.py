"""What a search must know of a model and of the texts that it goes on with."""

from collections.abc import Sequence
from dataclasses import dataclass

from bertkit.base.errors import InputError


@dataclass(frozen=True)
class DecodingLimits:
    """What a model can write.

    Attributes:
        end_id: the token that ends a sequence.
        max_tokens: most tokens, the end counted: of every source, or of each.
        forbidden_ids: tokens that are never written.
    """

    end_id: int
    max_tokens: int | Sequence[int]
    suppressed_ids: tuple[int, ...] = ()

    def max_tokens_of(self, num_sources: int, wanted: int | None) -> list[int]:
        """Most tokens of each source.

        Args:
            num_sources: that there are.
            wanted: never more than these.
        """
        limits = self.max_tokens
        each = [limits] * num_sources if isinstance(limits, int) else list(limits)
        if len(each) != num_sources:
            raise InputError(f"expected max_tokens of {num_sources} sources, got {len(each)}")
        if min(each) < 1:
            raise InputError("there is no room for another token; shorten the text")
        return each if wanted is None else [min(limit, wanted) for limit in each]


@dataclass(frozen=True)
class DecodingSource:
    """What a search may know of one source.

    Attributes:
        tokens: what its sequence begins with; counted where no tokens may come twice.
        number: what is drawn for it follows from this, and not from its neighbors.
    """

    tokens: tuple[int, ...] = ()
    number: int = 0
