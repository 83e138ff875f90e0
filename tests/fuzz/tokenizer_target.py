"""Random bytes as a `tokenizer.json` of Unigram or byte-level BPE; a good one is used."""

import json
from functools import cache
from pathlib import Path

from tests.tokenizer_folders import KINDS, TEXTS

from bertkit.tokenization.tokenizer import Tokenizer

NUM_INPUTS = 1_500
OTHERS = ("xlm-roberta", "bge-m3", "roberta", "modernbert", "mpnet")


@cache
def seeds() -> list[bytes]:
    """A small file of each kind."""
    return [json.dumps(KINDS[kind]()[0], ensure_ascii=False).encode() for kind in OTHERS]


def read(data: bytes, folder: Path) -> None:
    """Load a tokenizer, and use it."""
    (folder / "tokenizer.json").write_bytes(data)
    tokenizer = Tokenizer.load(folder)
    for text in TEXTS.values():
        found = tokenizer.encode(text, read_mask=True)
        tokenizer.decode(found.ids)
        tokenizer.find_words(text)
    tokenizer.piece_ids(TEXTS.values())
    assert len(tokenizer.descriptions) == len(tokenizer.is_continuation)
