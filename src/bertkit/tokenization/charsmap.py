"""SentencePiece's table of characters to replace, checked before the engine follows it.

The table is a trie, as a double array of 32-bit units (Darts), and the replacements behind it, each
ended by a NUL. The engine follows both without bounds, so a wrong one would end the process.

Source: google/sentencepiece `normalizer.cc`; s-yata/darts-clone `darts.h`.
"""

import base64
import binascii

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from bertkit.base.errors import InputError

MAX_CHARSMAP_BYTES = 4 << 20  # XLM-R's has 0.24 million
MAX_REPLACEMENT_BYTES = 256  # the longest of NFKC has 33
BLOCK = 256  # units; the children of a node are in one block

Units = NDArray[np.uint32]


def decode_charsmap(content: JsonValue, source: str) -> bytes:
    """Return the bytes of a table that is safe to follow; InputError otherwise."""
    try:
        if not isinstance(content, str) or len(content) > 4 * MAX_CHARSMAP_BYTES // 3:
            raise ValueError(f"must be base64 of at most {MAX_CHARSMAP_BYTES:,} bytes")
        table = base64.b64decode(content, validate=True)
        size = int.from_bytes(table[:4], "little")
        if len(table) < 4 or size % 4 or not size or size > len(table) - 4:
            raise ValueError("says a wrong size of its trie")
        units = np.frombuffer(table, dtype="<u4", count=size // 4, offset=4)
        _check_replacements(table[4 + size :], _list_values(units))
    except (ValueError, binascii.Error) as error:
        raise InputError(f"{source}: precompiled_charsmap {error}") from None
    return table


def _list_values(units: Units) -> NDArray[np.int64]:
    """Follow all paths of the trie, level by level; return the values where texts end."""
    values, nodes = list[NDArray[np.int64]](), np.zeros(1, dtype=np.int64)
    seen, labels = np.zeros(len(units), dtype=np.bool_), np.arange(1, 256)
    while len(nodes):
        seen[nodes] = True
        own = units[nodes].astype(np.int64)
        bases = nodes ^ ((own >> 10) << ((own & (1 << 9)) >> 6))
        if len(bases) and int((bases | (BLOCK - 1)).max()) >= len(units):
            raise ValueError("has a trie that points beyond its end")
        values.append(units[bases[(own >> 8) & 1 == 1]].astype(np.int64) & ((1 << 31) - 1))
        children = bases[:, None] ^ labels
        is_next = np.zeros(len(units), dtype=np.bool_)
        is_next[children[units[children] & ((1 << 31) | 0xFF) == labels]] = True
        nodes = np.flatnonzero(is_next & ~seen)  # branches may be shared
    return np.concatenate(values)


def _check_replacements(content: bytes, values: NDArray[np.int64]) -> None:
    """Check that each value is where a short text begins."""
    content.decode()
    data = np.frombuffer(content, dtype=np.uint8)
    ends = np.append(np.flatnonzero(data == 0), len(data))
    if len(ends) and int(np.diff(ends, prepend=-1).max()) > MAX_REPLACEMENT_BYTES:
        raise ValueError(f"has a replacement of more than {MAX_REPLACEMENT_BYTES} bytes")
    if len(values) and int(values.max()) >= len(data):
        raise ValueError("has a trie that points beyond the replacements")
    if (data[values] & 0xC0 == 0x80).any():
        raise ValueError("has a trie that points into a character")
