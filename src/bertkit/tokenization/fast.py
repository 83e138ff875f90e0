"""A faster encoder, nanotoken, where it is installed: the same ids by another program.

Only the version that our tests hold against the engine is used: on every code point, on random
strings, on fifteen scripts and on the corpus.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version

from tokenizers import Tokenizer as Engine

from bertkit.tokenization.engine import MAX_KNOWN_CHUNKS, SURROGATE
from bertkit.tokenization.segments import Pieces

TESTED_VERSION = "0.1.0"


def find_fast_encoder(engine: Engine) -> Callable[[Sequence[str]], Pieces] | None:
    """What cuts texts as an engine does, and faster; None where nanotoken isn't installed."""
    try:
        if version("nanotoken") != TESTED_VERSION:
            return None
    except PackageNotFoundError:
        return None
    import nanotoken

    nanotoken.set_cache_entries(MAX_KNOWN_CHUNKS)
    encoder = nanotoken.Tokenizer.from_json(engine.to_str())

    def encode(texts: Sequence[str]) -> Pieces:
        try:
            found = encoder.encode_batch(texts, add_special_tokens=False, parallel=False)
        except UnicodeEncodeError:  # half a character counts as U+FFFD, as in `run_engine`
            return encode([SURROGATE.sub("\ufffd", text) for text in texts])
        return Pieces(found.ids, found.offsets[1:])

    return encode
