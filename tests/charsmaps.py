"""SentencePiece's tables of characters, which the normalizer `Precompiled` reads."""

import numpy as np


def build_charsmap(replacements: dict[str, str]) -> bytes:
    """Write replacements as SentencePiece does: a double array trie, then the texts.

    A unit of the trie has a label in bits 0-7, bit 8 if a text ends there, and the distance to its
    children from bit 10 on; a leaf has bit 31 and the place of its text.
    """
    texts, places = bytearray(), {}
    for key, text in replacements.items():
        places[key.encode()] = len(texts)
        texts += text.encode() + b"\0"
    units: dict[int, int] = {0: 0}
    fill_trie(units, 0, b"", places)
    array = np.zeros(max(units) + 256, "<u4")
    for place, unit in units.items():
        array[place] = unit
    return len(array.tobytes()).to_bytes(4, "little") + array.tobytes() + bytes(texts)


def fill_trie(units: dict[int, int], node: int, prefix: bytes, places: dict[bytes, int]) -> None:
    """Place the children of a node where all of them are free, and their children behind."""
    labels = sorted({(key + b"\0")[len(prefix)] for key in places if key.startswith(prefix)})
    base = next(
        base for base in range(1, 1 << 21) if all(base ^ label not in units for label in labels)
    )
    units[node] |= (node ^ base) << 10 | (0 in labels) << 8
    for label in labels:
        units[base ^ label] = label or 1 << 31 | places[prefix]
    for label in filter(None, labels):
        fill_trie(units, base ^ label, prefix + bytes([label]), places)
