"""The tokenizer: text to token ids and back."""

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer as Engine

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import InputError
from bertkit.tokenization.definition import Definition
from bertkit.tokenization.encoding import (
    BatchEncoding,
    Encoding,
    fit_lengths,
    stack_padded,
    trim,
    weave,
)
from bertkit.tokenization.engine import (
    CONTINUATION,
    PLAIN_WORD,
    UNUSED,
    KnownChunks,
    cut_with_spaces,
    cut_words,
    run_engine,
)
from bertkit.tokenization.folder import read_folder, write_folder
from bertkit.tokenization.layout import BLANK
from bertkit.tokenization.segments import Pieces, cut_texts
from bertkit.tokenization.settings import MAX_WORD_CHARS, UNCASED, TokenizerSettings
from bertkit.tokenization.spelling import Spelling
from bertkit.tokenization.tokenizer_json import start_engine
from bertkit.tokenization.vocabulary import check_vocabulary
from bertkit.tokenization.word_spans import add_marks, find_pre_tokens, find_written_words

# Longer than a word may be, without spaces and the ideographs at which BERT splits words.
IDEOGRAPHS = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f"
)
LONG_CHUNK = re.compile(rf"[^\s{IDEOGRAPHS}]{{{MAX_WORD_CHARS + 1}}}")


class Tokenizer:
    """Text to token ids and back: WordPiece, Unigram or byte-level BPE.

    Strings such as `[SEP]` in a text are plain text; with `read_mask=True`, the text of the mask,
    such as `[MASK]`, is the mask.

    Args:
        vocabulary: the entries of a WordPiece in the order of their ids, of which `##` marks a
            continuation of a word; or what the files of another tokenizer define.
        settings: how WordPiece normalizes text.

    Raises:
        InputError: the vocabulary is empty, too large, repeats an entry, lacks a special token, or
            doesn't begin with [PAD].
    """

    def __init__(
        self, vocabulary: Sequence[str] | Definition, settings: TokenizerSettings = UNCASED
    ) -> None:
        if not isinstance(vocabulary, Definition):
            check_vocabulary(vocabulary, "the vocabulary")
            vocabulary = Definition.of_bert(vocabulary, settings)
        self.definition = vocabulary
        self.kind, self.vocabulary = vocabulary.kind, vocabulary.vocabulary
        self.settings, self.special = vocabulary.settings, vocabulary.special
        self._engine = start_engine(vocabulary)
        self._known_chunks = KnownChunks(self._engine, joins_words=self.kind == "WordPiece")
        self._ids = vocabulary.ids
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self._ids[token] for token in self.special
        )
        self.special_ids = frozenset(self._ids[token] for token in vocabulary.controls)
        self.template = vocabulary.template
        self.frame_ids = self.template.list_ids()  # of the special tokens around texts
        self._num_special = tuple(frame.num_special for frame in self.template)

    def __reduce__(self) -> tuple[type[Self], tuple[Definition]]:
        """Return how a copy is built, also in another process, without the known chunks."""
        return type(self), (self.definition,)

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Load from a folder (`tokenizer.json` or `vocab.txt`) or from a `vocab.txt` itself.

        Raises:
            MissingFileError: there is no such file or folder.
            DamagedFileError: a file is too large, not UTF-8, not JSON, or its checksum is wrong.
            InputError: the vocabulary is invalid, or the files ask for what no encoder has that
                bertkit knows.
        """
        return cls(read_folder(Path(path)))

    def save(self, folder: Path, *, max_length: int | None = None) -> dict[str, FileRecord]:
        """Write `tokenizer.json`, `tokenizer_config.json` and, of a WordPiece, `vocab.txt`.

        `transformers.AutoTokenizer` loads the folder and gives the same ids.

        Args:
            folder: created if missing.
            max_length: stored as `model_max_length`, the length at which other tools truncate.

        Returns:
            Size and checksums of each file, by name.

        Raises:
            StorageError: writing failed.
        """
        return write_folder(Path(folder), self.definition, max_length=max_length)

    @property
    def mask(self) -> str:
        """The text of the mask token, such as `[MASK]`."""
        return self.special.mask

    @property
    def vocab_size(self) -> int:
        """Number of entries, special tokens included."""
        return len(self.vocabulary)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what decides ids; equal for tokenizers that give the same ones."""
        return self.definition.fingerprint

    @cached_property
    def unused_ids(self) -> frozenset[int]:
        """The ids of the entries that a published vocabulary keeps free, such as [unused1]."""
        named = enumerate(self.vocabulary)
        return frozenset(index for index, token in named if UNUSED.fullmatch(token))

    @cached_property
    def _spelling(self) -> Spelling:
        return Spelling(self.definition)

    @property
    def is_continuation(self) -> npt.NDArray[np.bool_]:
        """For each id, whether it continues a word; shape [vocab_size].

        In scripts without blanks between words each piece is a word of its own.
        """
        return self._spelling.is_continuation

    @property
    def token_lengths(self) -> npt.NDArray[np.int64]:
        """For each id, its characters of text: `##` and special tokens have none; [vocab_size]."""
        return self._spelling.lengths

    @property
    def descriptions(self) -> Sequence[str]:
        """The entries as people read them; `##` marks a piece that continues a word."""
        return self._spelling.descriptions

    def describe_piece(self, index: int, *, begins_text: bool = False) -> str:
        """Return an entry as people read it; what begins a text doesn't continue a word."""
        shown = self.descriptions[index]
        is_marked = begins_text and self.kind != "WordPiece" and self.is_continuation[index]
        return shown.removeprefix(CONTINUATION) if is_marked else shown

    @cached_property
    def _mask_engine(self) -> Engine:
        return start_engine(self.definition, reads_mask=True)

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a vocabulary entry, or None if there is no such entry."""
        return self._ids.get(token)

    def find_entry(self, word: str) -> int | None:
        """Return the id of the entry that is a whole word; None if it has several pieces.

        Among the spellings of other algorithms than WordPiece, that with a blank in front is taken
        first.
        """
        if self.kind == "WordPiece" and word in self._ids:
            return self._ids[word]
        for [ids] in (self.word_piece_ids([word]), self.piece_ids([word])):
            if len(ids) == 1 and ids[0] != self.unk_id:
                return ids[0]
        return self._ids.get(word)

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
        parts = [self._run(engine, part) for part in (text, pair) if part is not None]
        kept = fit_lengths([len(ids) for ids, _ in parts], self.num_special(len(parts)), max_length)
        cut = [
            (ids[:count], spans[:count]) for (ids, spans), count in zip(parts, kept, strict=True)
        ]
        ids, types = self.join(*(own for own, _ in cut))
        gaps = [[(0, 0)] * len(gap) for gap in self.template[len(parts) - 1].gaps]
        offsets = chain.from_iterable(weave(gaps, [spans for _, spans in cut]))
        return Encoding(ids, types, [*offsets], [self.vocabulary[index] for index in ids])

    def encode_pieces(self, text: str) -> Encoding:
        """Encode one text without special tokens."""
        ids, offsets = self._run(self._engine, text)
        return Encoding(ids, [0] * len(ids), offsets, [self.vocabulary[index] for index in ids])

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
            kept = fit_lengths([len(part) for part in parts], self.num_special(len(parts)), limit)
            rows.append(self.join(*(part[:n] for part, n in zip(parts, kept, strict=True))))
        length = pad_to or max((len(ids) for ids, _ in rows), default=0)
        return stack_padded(rows, length, self.pad_id)

    def find_words(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of words (split at spaces and punctuation): `text[start:stop]`.

        Characters that normalization drops, such as control characters, belong to no word, unless
        they are inside one or are combining marks right after it. `word_spans.py` says what words
        are in scripts without blanks.
        """
        if text.isascii() and text.isprintable():
            return [word.span() for word in PLAIN_WORD.finditer(text)]
        if self.kind != "WordPiece":
            return find_written_words(text, lambda run: self.encode_pieces(run).offsets)
        words = find_pre_tokens(self._engine, text)
        return add_marks(text, words) if self.settings.strip_accents else words

    def count_in_long_words(self, text: str) -> int:
        """Count the characters in words that are [UNK] because they are too long."""
        longest = max(map(len, text.split()), default=0)
        if self.kind != "WordPiece" or longest <= MAX_WORD_CHARS:
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
        if self.kind == "WordPiece":
            return [list(chain.from_iterable(map(known_ids, text.split(" ")))) for text in texts]
        cut = cut_words if self.kind == "Unigram" else cut_with_spaces
        return [list(chain.from_iterable(map(known_ids, cut(text)))) for text in texts]

    def word_piece_ids(self, words: Iterable[str]) -> list[list[int]]:
        """Return the token ids of words that are given one by one, as if blanks stood between."""
        return self.piece_ids(map(self.place_word, words))

    def place_word(self, word: str) -> str:
        """Return a word or sentence as it stands in a text: BPE has it behind a blank."""
        if self.kind == "WordPiece":
            return word
        space = " " * (self.kind == "BPE")
        return f"{space}{word}" if word.strip() else ""

    def piece_arrays(self, texts: Sequence[str]) -> Pieces:
        """Return the ids of `piece_ids` as arrays: the fast path for a corpus.

        It is faster from a few thousand characters in total; a mebibyte per call is best.
        """
        if self.kind == "WordPiece":
            return cut_texts(texts, self._known_chunks)
        return Pieces.join(self.piece_ids(texts))

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

    def _run(self, engine: Engine, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return ids and offsets of a text's pieces; a blank before a word isn't of its piece."""
        found = run_engine(engine, text)
        if self.kind != "Unigram":
            return found.ids, found.offsets
        return found.ids, [
            trim(text, span) if token.startswith(BLANK) else span
            for token, span in zip(found.tokens, found.offsets, strict=True)
        ]


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
