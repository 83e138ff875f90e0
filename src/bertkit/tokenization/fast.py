"""A faster encoder, nanotoken, where it is installed: the same ids by another program.

Only the version that our tests hold against the engine is used: on every code point, on random
strings, on fifteen scripts and on the corpus.

Its tables have one size for the whole process, read whenever they grow, so it can't be set for ours
alone: it is lowered to ours, and a smaller one is left as it is.
"""

from collections.abc import Callable, Sequence
from importlib.metadata import version

from tokenizers import Tokenizer as Engine

from bertkit.tokenization.engine import MAX_KNOWN_CHUNKS, SURROGATE
from bertkit.tokenization.segments import Pieces

TESTED_VERSION = "0.1.0"


def find_fast_encoder(engine: Engine) -> Callable[[Sequence[str]], Pieces] | None:
    """What cuts texts as an engine does, and faster; None where nanotoken can't be used.

    It may be missing, not be made for this system, or not know the engine's kind of tokenizer.
    """
    try:
        if version("nanotoken") != TESTED_VERSION:
            return None
        import nanotoken
    except ImportError:  # what `version` raises is one too
        return None
    try:
        encoder = nanotoken.Tokenizer.from_json(engine.to_str())
    except nanotoken.UnsupportedTokenizerError:
        return None
    nanotoken.set_cache_entries(min(nanotoken.get_cache_entries(), MAX_KNOWN_CHUNKS))

    def encode(texts: Sequence[str]) -> Pieces:
        try:
            found = encoder.encode_batch(texts, add_special_tokens=False, parallel=False)
        except UnicodeEncodeError:  # half a character counts as U+FFFD, as in `run_engine`
            return encode([SURROGATE.sub("\ufffd", text) for text in texts])
        return Pieces(found.ids, found.offsets[1:])

    return encode
