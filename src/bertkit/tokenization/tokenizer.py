"""The tokenizer: text to token ids and back."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Self
from unicodedata import category

import numpy as np
import numpy.typing as npt
from tokenizers import AddedToken
from tokenizers import Tokenizer as Engine

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import InputError, SettingsError
from bertkit.tokenization.encoding import (
    BatchEncoding,
    Encoding,
    Template,
    cut_longest_first,
    stack_padded,
    weave,
)
from bertkit.tokenization.engine import (
    CLS,
    CONTINUATION,
    MASK,
    PAD,
    PLAIN_WORD,
    SEP,
    SPECIAL_TOKENS,
    UNK,
    UNUSED,
    KnownChunks,
    build_engine,
    run_engine,
)
from bertkit.tokenization.folder import check_vocabulary, read_folder, write_folder
from bertkit.tokenization.segments import Pieces, cut_texts
from bertkit.tokenization.settings import MAX_WORD_CHARS, UNCASED, TokenizerSettings

# Longer than a word may be, without spaces and the ideographs at which BERT splits words.
IDEOGRAPHS = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f"
)
LONG_CHUNK = re.compile(rf"[^\s{IDEOGRAPHS}]{{{MAX_WORD_CHARS + 1}}}")


class Tokenizer:
    """WordPiece with BERT's normalization.

    Strings such as `[SEP]` in a text are plain text; with `read_mask=True`, `[MASK]` is the mask.

    Args:
        vocabulary: the entries in the order of their ids; `##` marks a continuation of a word.
        settings: how text is normalized.

    Raises:
        InputError: the vocabulary is empty, too large, repeats an entry, lacks a special token, or
            doesn't begin with [PAD].
    """

    def __init__(self, vocabulary: Sequence[str], settings: TokenizerSettings = UNCASED) -> None:
        check_vocabulary(vocabulary, "the vocabulary")
        self.vocabulary = tuple(vocabulary)
        self.settings = settings
        self._engine = build_engine(self.vocabulary, settings)
        self._known_chunks = KnownChunks(self._engine)
        self._ids = {token: index for index, token in enumerate(self.vocabulary)}
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self._ids[token] for token in (PAD, UNK, CLS, SEP, MASK)
        )
        self.special_ids = frozenset(self._ids[token] for token in SPECIAL_TOKENS)
        self.template = Template.of_bert(self.cls_id, self.sep_id)
        self.frame_ids = self.template.list_ids()  # of the special tokens around texts
        self._num_special = tuple(frame.num_special for frame in self.template)

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[str, ...], TokenizerSettings]]:
        """Return how a copy is built, also in another process, without the known chunks."""
        return type(self), (self.vocabulary, self.settings)

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Load from a folder (`vocab.txt` or `tokenizer.json`) or from a `vocab.txt` itself.

        Raises:
            MissingFileError: there is no such file or folder.
            DamagedFileError: a file is too large, not UTF-8, not JSON, or its checksum is wrong.
            InputError: the vocabulary is invalid, or the files need an algorithm other than BERT's.
        """
        return cls(*read_folder(Path(path)))

    def save(self, folder: Path, *, max_length: int | None = None) -> dict[str, FileRecord]:
        """Write `vocab.txt`, `tokenizer.json` and `tokenizer_config.json`.

        `transformers.AutoTokenizer` loads the folder and gives the same ids.

        Args:
            folder: created if missing.
            max_length: stored as `model_max_length`, the length at which other tools truncate.

        Returns:
            Size and checksums of each file, by name.

        Raises:
            StorageError: writing failed.
        """
        return write_folder(Path(folder), self.vocabulary, self.settings, max_length=max_length)

    @property
    def mask(self) -> str:
        """The text of the mask token, such as `[MASK]`."""
        return self.vocabulary[self.mask_id]

    @property
    def vocab_size(self) -> int:
        """Number of entries, special tokens included."""
        return len(self.vocabulary)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of vocabulary and settings; equal for tokenizers that give the same ids."""
        content = "\n".join((self.settings.fingerprint(), *self.vocabulary))
        return hashlib.sha256(content.encode()).hexdigest()

    @cached_property
    def unused_ids(self) -> frozenset[int]:
        """The ids of the entries that a published vocabulary keeps free, such as [unused1]."""
        named = enumerate(self.vocabulary)
        return frozenset(index for index, token in named if UNUSED.fullmatch(token))

    @cached_property
    def is_continuation(self) -> npt.NDArray[np.bool_]:
        """For each id, whether it continues a word; shape [vocab_size]."""
        marks = [token.startswith(CONTINUATION) and len(token) > 2 for token in self.vocabulary]
        return np.array(marks, dtype=np.bool_)

    @cached_property
    def token_lengths(self) -> npt.NDArray[np.int64]:
        """For each id, its characters of text: `##` and special tokens have none; [vocab_size]."""
        lengths = np.array([len(token) for token in self.vocabulary], dtype=np.int64)
        lengths[list(self.special_ids)] = 0
        return lengths - len(CONTINUATION) * self.is_continuation

    @cached_property
    def _mask_engine(self) -> Engine:
        engine = build_engine(self.vocabulary, self.settings)
        engine.add_special_tokens([AddedToken(MASK, normalized=False, special=True)])
        return engine

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a vocabulary entry, or None if there is no such entry."""
        return self._ids.get(token)

    @property
    def descriptions(self) -> Sequence[str]:
        """The entries as people read them; `##` marks a piece that continues a word."""
        return self.vocabulary

    def describe_piece(self, index: int) -> str:
        """Return an entry as people read it."""
        return self.descriptions[index]

    def num_special(self, num_texts: int = 1) -> int:
        """Return how many special tokens stand around one text, or around two."""
        return self._num_special[num_texts - 1]

    def join(self, *texts: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return ids and token types of a sequence: special tokens around one text, or two."""
        frame = self.template[len(texts) - 1]
        ids, types = [*frame.gaps[0]], [frame.types[0]] * len(frame.gaps[0])
        blocks = zip(texts, frame.types[1::2], frame.gaps[1:], frame.types[2::2], strict=True)
        for text, kind, gap, kind_of_gap in blocks:
            ids += text
            ids += gap
            types += [kind] * len(text) + [kind_of_gap] * len(gap)
        return ids, types

    def find_starts(self, *lengths: int) -> tuple[int, ...]:
        """Return the position of each text's first token in a sequence, given their lengths."""
        starts, position = list[int](), 0
        for gap, length in zip(self.template[len(lengths) - 1].gaps, lengths, strict=False):
            starts.append(position + len(gap))
            position = starts[-1] + length
        return tuple(starts)

    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        max_length: int | None = None,
        read_mask: bool = False,
    ) -> Encoding:
        """Encode one text or a pair of texts.

        Args:
            text: the first text.
            pair: the second text.
            max_length: most tokens in total, special tokens included; the longer text is truncated
                first.
            read_mask: read `[MASK]` as the mask token.

        Raises:
            SettingsError: `max_length` is too small for the special tokens.
            InputError: an argument isn't a text.
        """
        check_texts([text] if pair is None else [text, pair])
        engine = self._mask_engine if read_mask else self._engine
        parts = [run_engine(engine, part) for part in (text, pair) if part is not None]
        kept = self._fit([len(part) for part in parts], max_length)
        cut = list(zip(parts, kept, strict=True))
        ids, types = self.join(*(part.ids[:count] for part, count in cut))
        gaps = [[(0, 0)] * len(gap) for gap in self.template[len(parts) - 1].gaps]
        offsets = chain.from_iterable(weave(gaps, [part.offsets[:count] for part, count in cut]))
        return Encoding(ids, types, [*offsets], [self.vocabulary[index] for index in ids])

    def encode_pieces(self, text: str) -> Encoding:
        """Encode one text without special tokens."""
        whole = run_engine(self._engine, text)
        return Encoding(whole.ids, [0] * len(whole), whole.offsets, whole.tokens)

    def encode_batch(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        *,
        max_length: int | None = None,
        pad_to: int | None = None,
        read_mask: bool = False,
    ) -> BatchEncoding:
        """Encode several texts, or pairs of texts, as a padded batch.

        Args:
            texts: the first texts.
            pairs: the second texts, one for each first text.
            max_length: most tokens in a row, special tokens included.
            pad_to: length of all rows: shorter ones are padded, longer ones truncated. By default
                rows are padded to the longest.
            read_mask: read `[MASK]` as the mask token.

        Raises:
            SettingsError: the length is too small for the special tokens.
            InputError: the numbers of texts and pairs differ, or an item isn't a text.
        """
        for part in (texts, pairs):
            if part is not None:
                check_texts(part)
        if pairs is not None and len(pairs) != len(texts):
            raise InputError(f"expected as many pairs as texts ({len(texts)}), got {len(pairs)}")
        limits = [limit for limit in (max_length, pad_to) if limit is not None]
        limit = min(limits, default=None)
        columns = [
            self.piece_ids(part, read_mask=read_mask) for part in (texts, pairs) if part is not None
        ]
        rows = []
        for parts in zip(*columns, strict=True):
            kept = self._fit([len(part) for part in parts], limit)
            rows.append(self.join(*(part[:n] for part, n in zip(parts, kept, strict=True))))
        length = pad_to or max((len(ids) for ids, _ in rows), default=0)
        return stack_padded(rows, length, self.pad_id)

    def find_words(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of BERT's words (split at spaces and punctuation): `text[start:stop]`.

        Characters that normalization drops, such as control characters, belong to no word, unless
        they are inside one or are combining marks right after it.
        """
        if text.isascii() and text.isprintable():
            return [word.span() for word in PLAIN_WORD.finditer(text)]
        encoding = run_engine(self._engine, text)
        spans: dict[int | None, tuple[int, int]] = {}
        for word, (start, stop) in zip(encoding.word_ids, encoding.offsets, strict=True):
            spans[word] = (spans[word][0] if word in spans else start, stop)
        if not self.settings.strip_accents:
            return list(spans.values())
        words = []
        for start, stop in spans.values():
            while stop < len(text) and category(text[stop]) == "Mn":  # a mark that was stripped
                stop += 1
            words.append((start, stop))
        return words

    def count_in_long_words(self, text: str) -> int:
        """Count the characters in words that are [UNK] because they are too long."""
        if max(map(len, text.split()), default=0) <= MAX_WORD_CHARS:
            return 0
        if self.settings.split_cjk and LONG_CHUNK.search(text) is None:
            return 0
        lengths = (stop - start for start, stop in self.find_words(text))
        return sum(length for length in lengths if length > MAX_WORD_CHARS)

    def piece_ids(self, texts: Iterable[str], *, read_mask: bool = False) -> list[list[int]]:
        """Return the token ids of each text, without special tokens; `read_mask` as in `encode`."""
        if read_mask:
            return [run_engine(self._mask_engine, text).ids for text in texts]
        known_ids = self._known_chunks.__getitem__
        return [list(chain.from_iterable(map(known_ids, text.split(" ")))) for text in texts]

    def word_piece_ids(self, words: Iterable[str]) -> list[list[int]]:
        """Return the token ids of words that are given one by one, as if blanks stood between."""
        return self.piece_ids(words)

    def piece_arrays(self, texts: Sequence[str]) -> Pieces:
        """Return the ids of `piece_ids` as arrays: the fast path for a corpus.

        It is faster from a few thousand characters in total; a mebibyte per call is best.
        """
        return cut_texts(texts, self._known_chunks)

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """Join pieces into readable text; by default special tokens are left out.

        Raises:
            InputError: an id is outside the vocabulary.
        """
        known = self.check_ids(ids)
        if skip_special_tokens:
            known = [index for index in known if index not in self.special_ids]
        return str(self._engine.decoder.decode([self.vocabulary[index] for index in known]))

    def check_ids(self, ids: Iterable[int]) -> list[int]:
        """Return token ids as a list; InputError if one is outside the vocabulary."""
        known = list(ids)
        for index in known:
            if not 0 <= index < self.vocab_size:
                raise InputError(f"token ids go from 0 to {self.vocab_size - 1}, got {index}")
        return known

    def _fit(self, lengths: Sequence[int], max_length: int | None) -> tuple[int, ...]:
        """Return how many tokens of each text to keep."""
        if max_length is None:
            return tuple(lengths)
        num_special = self.num_special(len(lengths))
        budget = max_length - num_special
        if budget < 0:
            raise SettingsError(
                f"a length of {max_length} has no room for the {num_special} special tokens"
                f" of {'a pair' if len(lengths) == 2 else 'one text'}; raise it"
            )
        return cut_longest_first(lengths[0], sum(lengths[1:]), budget)[: len(lengths)]


def check_texts(texts: Sequence[object]) -> None:
    """Reject a single text instead of a list, and items that aren't texts."""
    check_several(texts)
    for text in texts:
        if not isinstance(text, str):
            shown = " ".join(repr(text).split())
            raise InputError(f"expected a text, got {shown:.80} ({type(text).__name__})")


def check_several(texts: object) -> None:
    """Reject a single text instead of a list, and what isn't a sequence of values.

    Iterating over a mapping or a data frame would give the names of its columns.
    """
    if isinstance(texts, str):
        raise InputError("expected a list of texts, got one text; put it into a list")
    is_other = isinstance(texts, bytes | Mapping | AbstractSet) or hasattr(texts, "columns")
    is_other |= getattr(texts, "ndim", 1) == 0  # an array over which nothing can iterate
    if is_other or not isinstance(texts, Iterable):
        raise InputError(f"expected a list of texts, got {type(texts).__name__}")
