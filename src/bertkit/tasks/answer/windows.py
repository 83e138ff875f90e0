"""A long text in windows that overlap, and which of them knows a token best.

Source: google-research/bert `run_squad.py`: `doc_stride` is the distance between the beginnings of
two windows, and a token's context in a window is the shorter of its two sides.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int32]
LENGTH_BONUS = 0.01  # a token's worth of window, so that of equal contexts the longer window wins
NO_ANSWER = (0, 0)  # [CLS] is where an answer points that isn't in the window


@dataclass(frozen=True)
class Windows:
    """Where the windows of a context lie in it.

    Attributes:
        parts: the context's tokens that each window has, as a range of their numbers.
        owners: `[tokens]`, the window in which each token of the context has most context.
        offsets: `[tokens, 2]`, where each stands in the context, in characters.
        num_before: tokens of each window before its part: [CLS], question and [SEP].
    """

    parts: tuple[range, ...]
    owners: Numbers
    offsets: Numbers
    num_before: int


def cut_parts(num_tokens: int, size: int, stride: int) -> tuple[range, ...]:
    """Parts of a context, the last one perhaps shorter; one, empty, of an empty context.

    Args:
        num_tokens: of the context.
        size: tokens of a part.
        stride: from the beginning of one to that of the next; never more than `size`, so that
            every token is in a window.
    """
    num_more = max(0, num_tokens - size)
    step = min(size, stride)
    starts = range(0, num_more + step, step) if num_more else range(1)
    return tuple(range(start, min(start + size, num_tokens)) for start in starts)


def find_owners(parts: tuple[range, ...], num_tokens: int) -> Numbers:
    """For each token, the part in which it has most context; of several the first."""
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
    """First and last token of some characters; None where no token has any of them."""
    first = int(np.searchsorted(offsets[:, 1], span[0], side="right"))
    last = int(np.searchsorted(offsets[:, 0], span[1], side="left")) - 1
    return (first, last) if first <= last else None


def label_windows(windows: Windows, tokens: tuple[int, int] | None) -> npt.NDArray[np.int64]:
    """Where an answer begins and ends in each window, `[windows, 2]`.

    Args:
        windows: of the context.
        tokens: the answer's first and last; None where there is no answer.
    """
    labels = np.zeros((len(windows.parts), 2), dtype=np.int64)
    labels[:] = NO_ANSWER
    if tokens is not None:
        for number, part in enumerate(windows.parts):
            if part.start <= tokens[0] and tokens[1] < part.stop:
                labels[number] = np.array(tokens) - part.start + windows.num_before
    return labels
