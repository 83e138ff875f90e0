"""Words in pieces, and sentences that are longer than a sequence in windows.

A window holds whole words. Neighbouring windows overlap, and each word is tagged once, in the
window that has the most tokens on the side where it has fewer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class WordWindows:
    """A sentence in windows.

    Attributes:
        words: first word of each window, and the one behind its last.
        rows: for each word, where its first piece stands in the tokens of all windows, [CLS] and
            [SEP] of each included.
    """

    words: tuple[tuple[int, int], ...]
    rows: Numbers


def cut_windows(lengths: Sequence[int], room: int, context: int) -> WordWindows:
    """Cut a sentence into windows.

    Args:
        lengths: pieces of each word, none more than `room`.
        room: most pieces of a window.
        context: pieces that two windows have in common, as far as there is room for a new word.
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    starts = ends - np.asarray(lengths, dtype=np.int64)
    windows = [(0, _count_fitting(ends, room))]
    while windows[-1][1] < len(lengths):
        stop = windows[-1][1]
        overlap = min(context, room - lengths[stop])
        first = int(np.searchsorted(starts, starts[stop] - overlap))
        begin = max(windows[-1][0] + 1, first)
        windows.append((begin, begin + _count_fitting(ends[begin:] - starts[begin], room)))
    return WordWindows(tuple(windows), _find_rows(windows, starts, ends))


def _count_fitting(ends: Numbers, room: int) -> int:
    """How many words fit, given where each ends."""
    return int(np.searchsorted(ends, room, side="right"))


def _find_rows(windows: Sequence[tuple[int, int]], starts: Numbers, ends: Numbers) -> Numbers:
    """The row of each word, in the window where it has most around it."""
    rows = np.zeros(len(starts), dtype=np.int64)
    most = np.full(len(starts), -1, dtype=np.int64)
    offset = 0
    for begin, stop in windows:
        if begin == stop:
            break  # a sentence without a word
        first, last = starts[begin], ends[stop - 1]
        before = starts[begin:stop] - first
        behind = last - ends[begin:stop]
        far = np.iinfo(np.int64).max
        if begin == 0:
            before = np.full_like(before, far)
        if stop == len(starts):
            behind = np.full_like(behind, far)
        around = np.minimum(before, behind)
        is_better = around > most[begin:stop]
        places = offset + 1 + starts[begin:stop] - first
        rows[begin:stop] = np.where(is_better, places, rows[begin:stop])
        most[begin:stop] = np.maximum(around, most[begin:stop])
        offset += int(last - first) + 2
    return rows
