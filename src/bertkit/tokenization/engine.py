"""The WordPiece engine (the `tokenizers` library, in Rust) and a cache of chunks already tokenized.

BERT's algorithm: drop control characters, turn all white space into spaces, put spaces around
Chinese characters, strip accents, lowercase, split at white space and around punctuation, then
split each word greedily into the longest vocabulary entries.

Source: google-research/bert `tokenization.py`.
"""

import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from tokenizers import Encoding as EngineEncoding
from tokenizers import Tokenizer as Engine
from tokenizers import decoders, models, normalizers, pre_tokenizers

from bertkit.tokenization.settings import MAX_WORD_CHARS, TokenizerSettings
from bertkit.tokenization.words import SURROGATE

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
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

    BERT's algorithm never looks across a space, so a text's ids are those of its chunks. A full
    cache is cleared, so its memory is bounded (50 MB for English, 150 MB at worst) and it adapts
    when the domain changes. The ids of a chunk of plain letters, digits and punctuation are joined
    from those of its words, which are far fewer than the chunks.
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


@dataclass(frozen=True)
class Encoding:
    """One encoded text or pair: `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`."""

    ids: list[int]
    token_type_ids: list[int]  # 0 for `[CLS] A [SEP]`, 1 for `B [SEP]`
    # `text[start:stop]`; (0, 0) for special tokens that encoding added
    offsets: list[tuple[int, int]]
    tokens: list[str]  # the vocabulary entries

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class BatchEncoding:
    """A padded batch of encodings, as int64 arrays of shape [batch, length]."""

    input_ids: npt.NDArray[np.int64]  # padded with [PAD]
    token_type_ids: npt.NDArray[np.int64]  # 0 for the first text and for padding, 1 for the second
    attention_mask: npt.NDArray[np.int64]  # 1 for tokens, 0 for padding


def cut_longest_first(length_a: int, length_b: int, budget: int) -> tuple[int, int]:
    """Return how many tokens of each text to keep so that both together fit the budget.

    The longer text loses its last token, repeatedly; if both are equally long, the second does.

    Source: google-research/bert `run_classifier.py`, `_truncate_seq_pair`.
    """
    if length_a + length_b <= budget:
        return length_a, length_b
    kept_b = min(length_b, max(budget - length_a, budget // 2))
    return budget - kept_b, kept_b


def stack_padded(
    rows: Sequence[tuple[list[int], list[int]]], length: int, pad_id: int
) -> BatchEncoding:
    """Stack (ids, token types) of several sequences into one batch, padded to `length`."""
    shape = (len(rows), length)
    input_ids = np.full(shape, pad_id, dtype=np.int64)
    token_type_ids = np.zeros(shape, dtype=np.int64)
    attention_mask = np.zeros(shape, dtype=np.int64)
    for row, (ids, types) in enumerate(rows):
        input_ids[row, : len(ids)] = ids
        token_type_ids[row, : len(types)] = types
        attention_mask[row, : len(ids)] = 1
    return BatchEncoding(input_ids, token_type_ids, attention_mask)


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
