"""The WordPiece engine (the `tokenizers` library, in Rust) and a table of words it has cut before.

BERT's algorithm: drop control characters, make all white space blanks, set Chinese characters off,
strip accents, lower the case, split at white space and around punctuation, then cut each word
greedily into the longest entries of the vocabulary.

Source: google-research/bert `tokenization.py`.
"""

import re
from collections.abc import Sequence

from tokenizers import Encoding as EngineEncoding
from tokenizers import Tokenizer as Engine
from tokenizers import decoders, models, normalizers, pre_tokenizers

from bertkit.tokenization.settings import TokenizerSettings

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
CONTINUATION = "##"
MAX_WORD_CHARS = 100  # a longer word is [UNK]
MAX_KNOWN_CHUNKS = 1 << 18
MAX_KNOWN_IDS = 8  # a chunk of more is rarely met again, as in scripts without blanks

SURROGATE = re.compile("[\ud800-\udfff]")
PLAIN_WORD = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~‘’“”–—…]")
PLAIN_CHUNK = re.compile(r"[!-~‘’“”–—…]{2,}")


def build_engine(vocabulary: Sequence[str], settings: TokenizerSettings) -> Engine:
    """An engine that reads strings such as `[SEP]` as text."""
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
    """The normalizer with all three switches set."""
    return normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.split_cjk,
        strip_accents=settings.strip_accents,
        lowercase=settings.lowercase,
    )


def run_engine(engine: Engine, text: str) -> EngineEncoding:
    """Cut a text, without adding special tokens.

    A lone surrogate (half of a character, as broken JSON escapes leave behind) counts as U+FFFD,
    which BERT drops.
    """
    if not text.isascii():
        text = SURROGATE.sub("\ufffd", text)
    return engine.encode(text, add_special_tokens=False)


class KnownChunks(dict[str, tuple[int, ...]]):
    """Chunk of text between two blanks → its token ids; cuts what it is first asked for.

    Nothing in BERT's algorithm looks across a blank, so a text's ids are those of its chunks. A
    full table is emptied, so its memory is bounded (50 MB of English, 150 MB at the worst) and it
    follows the text from one domain to the next. A chunk of plain letters, digits and punctuation
    is put together from its words, which are far fewer than the chunks.
    """

    def __init__(self, engine: Engine, max_chunks: int = MAX_KNOWN_CHUNKS) -> None:
        super().__init__()
        self._engine = engine
        self._max_chunks = max_chunks

    def __missing__(self, chunk: str) -> tuple[int, ...]:
        ids = self._cut(chunk)
        if len(ids) <= MAX_KNOWN_IDS and len(chunk) <= MAX_WORD_CHARS:
            if len(self) >= self._max_chunks:
                self.clear()
            self[chunk] = ids
        return ids

    def _cut(self, chunk: str) -> tuple[int, ...]:
        if PLAIN_CHUNK.fullmatch(chunk):
            words = PLAIN_WORD.findall(chunk)
            if len(words) > 1:
                return tuple(token for word in words for token in self[word])
        return tuple(run_engine(self._engine, chunk).ids)
