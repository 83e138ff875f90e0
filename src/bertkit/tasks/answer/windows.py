"""Contexts of questions in windows: where they begin, and which window a token belongs to."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int32]
LENGTH_BONUS = 0.01  # score per token of a window, so that the longer window wins ties


@dataclass(frozen=True)
class Windows:
    """The positions of windows in a context."""

    parts: tuple[range, ...]  # the range of context tokens in each window
    owners: Numbers  # `[tokens]`, the window in which each token has most context
    offsets: Numbers  # `[tokens, 2]`, start and end of each token in the context, in characters
    num_before: int  # tokens before each window's part: [CLS], question and [SEP]


def find_owners(parts: tuple[range, ...], num_tokens: int) -> Numbers:
    """Find the part in which each token has most context; ties go to the first."""
    owners = np.zeros(num_tokens, dtype=np.int32)
    most = np.full(num_tokens, -1.0)
    for number, part in enumerate(parts):
        places = np.arange(len(part))
        context = np.minimum(places, places[::-1]) + LENGTH_BONUS * len(part)
        is_more = context > most[part.start : part.stop]
        owners[part.start : part.stop][is_more] = number
        most[part.start : part.stop][is_more] = context[is_more]
    return owners


def find_tokens(offsets: Numbers, span: tuple[int, int]) -> tuple[int, int] | None:
    """Find the first and last token of a character span; None if no token overlaps it."""
    first = int(np.searchsorted(offsets[:, 1], span[0], side="right"))
    last = int(np.searchsorted(offsets[:, 0], span[1], side="left")) - 1
    return (first, last) if first <= last else None
