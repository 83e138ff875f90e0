"""The fast path for a corpus: texts as segments, of which each distinct one is tokenized once.

BERT's algorithm splits words at spaces and around punctuation, so the ids of a text are those of
the segments between.
"""

import string
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from bertkit.tokenization.engine import KnownChunks
from bertkit.tokenization.words import SURROGATE

BLANK, LETTER, MARK, LINE_FEED = range(4)
KINDS = dict.fromkeys(string.punctuation, MARK) | {" ": BLANK, "\n": LINE_FEED}
KIND_OF_BYTE = bytes(KINDS.get(chr(byte), LETTER) for byte in range(256))
OTHER_MARKS = "‘’“”–—…"  # the frequent multi-byte marks; the engine splits at any other


@dataclass(frozen=True)
class Segments:
    """Texts as segments that can be tokenized independently."""

    distinct: list[str]  # without trailing spaces, hence with a few duplicates
    numbers: NDArray[np.int32]  # `[segments]`, the index of each in `distinct`
    ends: NDArray[np.int64]  # `[texts]`, the end of each text, counted in segments


@dataclass(frozen=True)
class Pieces:
    """The token ids of several texts."""

    ids: NDArray[np.uint32]  # `[tokens]`, of all texts, concatenated, without special tokens
    ends: NDArray[np.int64]  # `[texts]`, the end of each text, counted in tokens

    def to_lists(self) -> list[list[int]]:
        """Return the ids of each text."""
        starts = [0, *self.ends.tolist()]
        return [self.ids[start:end].tolist() for start, end in pairwise(starts)]


def find_segments(texts: Sequence[str]) -> Segments:
    """Split texts at spaces and around punctuation."""
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
    """Join texts with line feeds, as UTF-8; a line feed within a text becomes a space."""
    text = "\n".join(texts)
    if text.count("\n") >= len(texts):
        text = "\n".join([text.replace("\n", " ") for text in texts])
    for mark in OTHER_MARKS:
        if mark in text:
            text = text.replace(mark, f" {mark} ")
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate is treated as U+FFFD, as in `run_engine`
        return SURROGATE.sub("\ufffd", text).encode()


def _find_starts(data: bytes) -> NDArray[np.int64]:
    """Return the start byte of each segment, and the end; a segment includes trailing spaces."""
    kinds = np.frombuffer(data.translate(KIND_OF_BYTE), dtype=np.uint8)
    is_start = kinds >= MARK
    is_start[1:] |= (kinds[1:] != kinds[:-1]) & (kinds[1:] != BLANK)
    is_start[:1] = True
    return np.append(np.flatnonzero(is_start), len(data))


def cut_segments(segments: Segments, known: KnownChunks) -> Pieces:
    """Tokenize each distinct segment and assemble the token ids of each text."""
    pieces = [known[segment] for segment in segments.distinct]
    lengths = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
    flat = np.fromiter(chain.from_iterable(pieces), dtype=np.uint32, count=lengths.sum())
    starts = (np.cumsum(lengths) - lengths)[segments.numbers]
    lengths = lengths[segments.numbers]
    ends = np.cumsum(lengths)
    num_pieces = int(lengths.sum())
    places = np.repeat(starts - (ends - lengths), lengths) + np.arange(num_pieces)
    return Pieces(flat[places], np.append(0, ends)[segments.ends])
