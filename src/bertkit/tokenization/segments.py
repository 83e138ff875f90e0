"""A large lot of text, cut in a few passes over all of it into stretches with ids of their own.

Nothing in BERT's algorithm looks across a blank or past a punctuation mark, so what stands between
them is cut by itself, and each distinct stretch once. In natural text most have come before.
"""

import string
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from bertkit.tokenization.engine import SURROGATE, KnownChunks

BLANK, LETTER, MARK, LINE_FEED = range(4)
KINDS = dict.fromkeys(string.punctuation, MARK) | {" ": BLANK, "\n": LINE_FEED}
KIND_OF_BYTE = bytes(KINDS.get(chr(byte), LETTER) for byte in range(256))
OTHER_MARKS = "‘’“”–—…"  # frequent ones of several bytes; any other is the engine's work


@dataclass(frozen=True)
class Segments:
    """Texts as stretches that can be cut one by one.

    Attributes:
        distinct: each stretch that occurs, without blanks after it; some come twice.
        numbers: `[stretches]`, the place of each in `distinct`.
        ends: `[texts]`, where among the stretches each text ends.
    """

    distinct: list[str]
    numbers: NDArray[np.int32]
    ends: NDArray[np.int64]


@dataclass(frozen=True)
class Pieces:
    """The token ids of several texts.

    Attributes:
        ids: `[tokens]`, of all texts, end to end, without special tokens.
        ends: `[texts]`, where among the tokens each text ends.
    """

    ids: NDArray[np.uint32]
    ends: NDArray[np.int64]

    def to_lists(self) -> list[list[int]]:
        """The ids of each text."""
        starts = [0, *self.ends.tolist()]
        return [self.ids[start:end].tolist() for start, end in pairwise(starts)]


def find_segments(texts: Sequence[str]) -> Segments:
    """Cut texts at blanks and around punctuation; a line feed stands between two texts."""
    import pyarrow as pa

    data = _join(texts)
    starts = _find_starts(data)
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(data)]
    column = pa.Array.from_buffers(pa.large_string(), len(starts) - 1, buffers)
    encoded = column.dictionary_encode()
    feeds = np.flatnonzero(np.frombuffer(data, dtype=np.uint8)[starts[:-1]] == ord("\n"))
    return Segments(
        distinct=[segment.rstrip(" ") for segment in encoded.dictionary.to_pylist()],
        numbers=encoded.indices.to_numpy(),
        ends=np.append(feeds, len(starts) - 1)[: len(texts)],
    )


def _join(texts: Sequence[str]) -> bytes:
    """All texts in UTF-8; to BERT a line feed in a text is a blank."""
    text = "\n".join(texts)
    if text.count("\n") >= len(texts):
        text = "\n".join([text.replace("\n", " ") for text in texts])
    for mark in OTHER_MARKS:
        if mark in text:
            text = text.replace(mark, f" {mark} ")
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a character counts as U+FFFD, as in `run_engine`
        return SURROGATE.sub("\ufffd", text).encode()


def _find_starts(data: bytes) -> NDArray[np.int64]:
    """The byte where each stretch begins, and the end; blanks belong to the stretch before them."""
    kinds = np.frombuffer(data.translate(KIND_OF_BYTE), dtype=np.uint8)
    is_start = kinds >= MARK
    is_start[1:] |= (kinds[1:] != kinds[:-1]) & (kinds[1:] != BLANK)
    is_start[:1] = True
    return np.append(np.flatnonzero(is_start), len(data))


def cut_segments(segments: Segments, known: KnownChunks) -> Pieces:
    """The token ids of each text, from those of its stretches."""
    pieces = [known[segment] for segment in segments.distinct]
    lengths = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
    flat = np.fromiter(chain.from_iterable(pieces), dtype=np.uint32, count=lengths.sum())
    starts = (np.cumsum(lengths) - lengths)[segments.numbers]
    lengths = lengths[segments.numbers]
    ends = np.cumsum(lengths)
    num_pieces = int(lengths.sum())
    places = np.repeat(starts - (ends - lengths), lengths) + np.arange(num_pieces)
    return Pieces(flat[places], np.append(0, ends)[segments.ends])
