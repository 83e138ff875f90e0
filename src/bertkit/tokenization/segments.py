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
class Pieces:
    """The token ids of several texts."""

    ids: NDArray[np.uint32]  # `[tokens]`, of all texts, concatenated, without special tokens
    ends: NDArray[np.int64]  # `[texts]`, the end of each text, counted in tokens

    @classmethod
    def join(cls, texts: Sequence[Sequence[int]]) -> "Pieces":
        """Join the ids of several texts."""
        ends = np.cumsum([len(ids) for ids in texts], dtype=np.int64)
        num_ids = int(ends[-1]) if len(ends) else 0
        return cls(np.fromiter(chain.from_iterable(texts), np.uint32, num_ids), ends)

    def to_lists(self) -> list[list[int]]:
        """Return the ids of each text."""
        starts = [0, *self.ends.tolist()]
        return [self.ids[start:end].tolist() for start, end in pairwise(starts)]


def cut_texts(texts: Sequence[str], known: KnownChunks) -> Pieces:
    """Split texts at spaces and around punctuation, and tokenize each distinct segment."""
    import pyarrow as pa

    data = _join(texts)
    kinds = np.frombuffer(data.translate(KIND_OF_BYTE), dtype=np.uint8)
    is_start = kinds >= MARK
    is_start[1:] |= (kinds[1:] != kinds[:-1]) & (kinds[1:] != BLANK)  # a segment ends in its spaces
    is_start[:1] = True
    starts = np.append(np.flatnonzero(is_start), len(data))
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(data)]
    column = pa.Array.from_buffers(pa.large_string(), len(starts) - 1, buffers)
    encoded = column.dictionary_encode()
    pieces = [known[segment.rstrip(" ")] for segment in encoded.dictionary.to_pylist()]
    lengths = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
    flat = np.fromiter(chain.from_iterable(pieces), dtype=np.uint32, count=lengths.sum())
    numbers = encoded.indices.to_numpy()  # of each segment, among the distinct ones
    starts_in_flat, lengths = (np.cumsum(lengths) - lengths)[numbers], lengths[numbers]
    ends = np.cumsum(lengths)
    places = np.repeat(starts_in_flat - (ends - lengths), lengths) + np.arange(lengths.sum())
    feeds = np.flatnonzero(np.frombuffer(data, dtype=np.uint8)[starts[:-1]] == ord("\n"))
    last_segments = np.append(feeds, len(starts) - 1)[: len(texts)]
    return Pieces(flat[places], np.append(0, ends)[last_segments])


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
