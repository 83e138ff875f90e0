"""The limits of a model and the properties of each source that a search needs."""

from collections.abc import Sequence
from dataclasses import dataclass

from bertkit.base.errors import InputError


@dataclass(frozen=True)
class DecodingLimits:
    """A model's limits on what is generated.

    Attributes:
        end_id: the token that ends a sequence.
        max_tokens: most tokens, end token included: one number for all sources, or one for each.
        suppressed_ids: tokens that are never generated.
    """

    end_id: int
    max_tokens: int | Sequence[int]
    suppressed_ids: tuple[int, ...] = ()

    def max_tokens_of(self, num_sources: int, wanted: int | None) -> list[int]:
        """Return the most tokens of each source, end token included.

        Args:
            num_sources: number of sources.
            wanted: an upper bound for all of them.
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
    """One source of a search.

    Attributes:
        tokens: the prefix of its sequence; `no_repeat_ngram` counts it too.
        number: seeds its sampling, so that its draws don't depend on the rest of the batch.
    """

    tokens: tuple[int, ...] = ()
    number: int = 0
