"""The WordPiece engine (the `tokenizers` library, in Rust) and a cache of chunks already tokenized.

BERT's algorithm: drop control characters, turn all white space into spaces, put spaces around
Chinese characters, strip accents, lowercase, split at white space and around punctuation, then
split each word greedily into the longest vocabulary entries. The engines of other algorithms are
built in `piece_tables.py`.

Source: google-research/bert `tokenization.py`.
"""

import re
from collections.abc import Sequence

from tokenizers import Encoding as EngineEncoding
from tokenizers import Tokenizer as Engine
from tokenizers import decoders, models, normalizers, pre_tokenizers

from bertkit.tokenization.names import OF_BERT
from bertkit.tokenization.settings import MAX_WORD_CHARS, TokenizerSettings
from bertkit.tokenization.words import SURROGATE

PAD, UNK, CLS, SEP, MASK = SPECIAL_TOKENS = OF_BERT
UNUSED = re.compile(r"\[unused\d+\]")  # entries that published vocabularies keep free
CONTINUATION = "##"
MAX_KNOWN_CHUNKS = 1 << 18
MAX_KNOWN_IDS = 8  # longer chunks, common in scripts without spaces, rarely recur

PLAIN_WORD = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~‘’“”–—…]")
PLAIN_CHUNK = re.compile(r"[!-~‘’“”–—…]{2,}")


def build_engine(vocabulary: Sequence[str], settings: TokenizerSettings) -> Engine:
    """Build an engine that treats strings such as `[SEP]` as plain text."""
    entries = {token: index for index, token in enumerate(vocabulary)}
    engine = Engine(
        models.WordPiece(
            entries,
            unk_token=UNK,
            max_input_chars_per_word=MAX_WORD_CHARS,
            continuing_subword_prefix=CONTINUATION,
        )
    )
    engine.normalizer = build_normalizer(settings)
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.decoder = decoders.WordPiece(prefix=CONTINUATION, cleanup=True)
    return engine


def build_normalizer(settings: TokenizerSettings) -> normalizers.BertNormalizer:
    """Build the normalizer from the three switches."""
    return normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.split_cjk,
        strip_accents=settings.strip_accents,
        lowercase=settings.lowercase,
    )


def run_engine(engine: Engine, text: str) -> EngineEncoding:
    """Tokenize a text, without adding special tokens.

    A lone surrogate (half of a character, from a broken JSON escape) is treated as U+FFFD, which
    BERT drops.
    """
    if not text.isascii():
        text = SURROGATE.sub("\ufffd", text)
    return engine.encode(text, add_special_tokens=False)


class KnownChunks(dict[str, tuple[int, ...]]):
    """A cache from space-separated chunks of text to their token ids, filled on first access.

    No algorithm looks across a space between words, so a text's ids are those of its chunks. A full
    cache is cleared, so its memory is bounded (50 MB for English, 150 MB at worst) and it adapts
    when the domain changes. The ids of a chunk of plain letters, digits and punctuation are joined
    from those of its words, which are far fewer than the chunks, where that `joins_words`.
    """

    def __init__(
        self, engine: Engine, max_chunks: int = MAX_KNOWN_CHUNKS, *, joins_words: bool = True
    ) -> None:
        super().__init__()
        self._engine = engine
        self._max_chunks = max_chunks
        self._joins_words = joins_words

    def __missing__(self, chunk: str) -> tuple[int, ...]:
        ids = self._cut(chunk)
        if len(ids) <= MAX_KNOWN_IDS and len(chunk) <= MAX_WORD_CHARS:
            if len(self) >= self._max_chunks:
                self.clear()
            self[chunk] = ids
        return ids

    def _cut(self, chunk: str) -> tuple[int, ...]:
        if self._joins_words and PLAIN_CHUNK.fullmatch(chunk):
            words = PLAIN_WORD.findall(chunk)
            if len(words) > 1:
                return tuple(token for word in words for token in self[word])
        return tuple(run_engine(self._engine, chunk).ids)


# A space between ordinary characters, at which a text may be divided whatever the algorithm: what
# is beside it neither joins it in one character (as marks do) nor is itself a kind of blank.
BORDER = re.compile(r"(?<=[\w!-~]) (?=[\w!-~])")


def cut_words(text: str) -> list[str]:
    """Divide a text at single spaces between words; what is less plain stays together."""
    is_plain = text.isascii() and text.isprintable() and "  " not in text
    if is_plain and text[:1] != " " and text[-1:] != " ":
        return text.split(" ")
    return BORDER.split(text)


def cut_with_spaces(text: str) -> list[str]:
    """Divide a text before such spaces, which belong to the words behind them."""
    first, *others = cut_words(text)
    return [first, *(f" {word}" for word in others)]
