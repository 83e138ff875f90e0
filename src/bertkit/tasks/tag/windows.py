"""Long sentences in windows: which words each has, and where a word has most context."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class WordWindows:
    """A sentence in windows."""

    # the first word of each window, and the index after its last
    words: tuple[tuple[int, int], ...]
    rows: Numbers  # of each word's first piece in the tokens of all windows, [CLS] and [SEP] too


def cut_windows(lengths: Sequence[int], room: int, context: int) -> WordWindows:
    """Cut a sentence into windows of at most `room` pieces; `lengths` are the pieces of each word.

    Two windows share `context` pieces, at most half of a window, and less where a new word needs
    the room.
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    starts = ends - np.asarray(lengths, dtype=np.int64)
    windows = [(0, int(np.searchsorted(ends, room, side="right")))]
    if windows[0][1] == len(lengths):
        return WordWindows(tuple(windows), starts + 1)
    while (stop := windows[-1][1]) < len(lengths):
        overlap = min(context, room // 2, room - lengths[stop])
        begin = int(np.searchsorted(starts, starts[stop] - overlap))
        windows.append((begin, int(np.searchsorted(ends, starts[begin] + room, side="right"))))
    return WordWindows(tuple(windows), _find_rows(windows, starts, ends))


def _find_rows(windows: Sequence[tuple[int, int]], starts: Numbers, ends: Numbers) -> Numbers:
    """Find the row of each word in the window where it has most context."""
    rows = np.zeros(len(starts), dtype=np.int64)
    most = np.full(len(starts), -1, dtype=np.int64)
    far = np.iinfo(np.int64).max
    offset = 0
    for begin, stop in windows:
        first, last = starts[begin], ends[stop - 1]
        before = starts[begin:stop] - first
        behind = last - ends[begin:stop]
        if stop == len(starts):  # at the beginning it would make no difference
            behind = np.full_like(behind, far)
        around = np.minimum(before, behind)
        is_better = around > most[begin:stop]
        places = offset + 1 + starts[begin:stop] - first
        rows[begin:stop] = np.where(is_better, places, rows[begin:stop])
        most[begin:stop] = np.maximum(around, most[begin:stop])
        offset += int(last - first) + 2
    return rows
