"""nanotoken, an optional faster encoder that gives the same ids.

Only the version that the tests compare with the engine is used: on every code point, on random
strings, on fifteen scripts and on the corpus.

Its cache size is one setting for the whole process, read whenever a cache grows, so it can't be set
for one tokenizer alone: it is lowered to our limit, and a smaller one is kept.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import version

from tokenizers import Tokenizer as Engine

from bertkit.tokenization.engine import MAX_KNOWN_CHUNKS, SURROGATE
from bertkit.tokenization.segments import Pieces

TESTED_VERSION = "0.1.0"


def find_fast_encoder(engine: Engine) -> Callable[[Sequence[str]], Pieces] | None:
    """Return a function that tokenizes texts like the engine, or None if nanotoken can't be used.

    It may be missing, not built for this system, or not support the engine's kind of tokenizer.
    """
    try:
        if version("nanotoken") != TESTED_VERSION:
            return None
        import nanotoken
    except ImportError:  # includes `version`'s PackageNotFoundError
        return None
    try:
        encoder = nanotoken.Tokenizer.from_json(engine.to_str())
    except nanotoken.UnsupportedTokenizerError:
        return None
    nanotoken.set_cache_entries(min(nanotoken.get_cache_entries(), MAX_KNOWN_CHUNKS))

    def encode(texts: Sequence[str]) -> Pieces:
        try:
            found = encoder.encode_batch(texts, add_special_tokens=False, parallel=False)
        except UnicodeEncodeError:  # a lone surrogate is treated as U+FFFD, as in `run_engine`
            return encode([SURROGATE.sub("\ufffd", text) for text in texts])
        return Pieces(found.ids, found.offsets[1:])

    return encode
