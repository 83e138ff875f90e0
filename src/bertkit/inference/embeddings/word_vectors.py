"""Vectors of single words without context: neighbors and analogies."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import CheckpointError, InputError, pluralize
from bertkit.base.progress import show_progress
from bertkit.checkpoints.huggingface import is_own_network
from bertkit.inference.embeddings.pooling import normalize
from bertkit.inference.embeddings.settings import WordVectorSettings
from bertkit.inference.engines.choice import open_engine
from bertkit.inference.engines.engine import Engine, check_finite, resolve_layers
from bertkit.inference.loading import find_max_length
from bertkit.inference.pipeline import Loadable
from bertkit.models.bert.config import ENCODER
from bertkit.models.open_model import OpenModel
from bertkit.nn.packed_ids import PackedIds
from bertkit.tokenization.tokenizer import Tokenizer

MIN_LENGTH = 1e-6  # of a sum of unit vectors; a shorter one is only rounding error
OWN_TABLE = "embeddings.weight"  # the word vectors of a network of bertkit's studies
WORDS = "encoder.embeddings.word.weight"  # those of a BERT
SMALLEST = np.finfo(np.float32).tiny

Vector = npt.NDArray[np.float32]  # `[features]`
Vectors = npt.NDArray[np.float32]  # `[rows, features]`


@dataclass(frozen=True)
class NamedWord:
    """A word of a query."""

    word: str
    pieces: tuple[str, ...]  # its vocabulary entries; with several, the vector is their mean
    token_ids: tuple[int, ...]


@dataclass(frozen=True)
class Neighbor:
    """A vocabulary entry near a query vector."""

    token: str  # pieces that continue a word begin with ##
    token_id: int
    similarity: float  # the cosine to the query


@dataclass(frozen=True)
class Neighbors:
    """The nearest entries to a word, or to a sum of words."""

    plus: tuple[NamedWord, ...]  # the added words
    minus: tuple[NamedWord, ...]  # the subtracted words
    layer: int  # counted from 0
    neighbors: tuple[Neighbor, ...]  # the nearest first; ties by the lower id


@dataclass(frozen=True)
class WordTable:
    """The vectors of single words, with the tokenizer that knows the words.

    Attributes:
        vectors: of the entries of the vocabulary, `[vocabulary, features]`; or the engine that
            computes those of a layer above the word embeddings.
        max_length: the most tokens that the engine takes.
        is_whole: whether each entry has a vector; else those without one are zero.
    """

    vectors: Vectors | Engine
    tokenizer: Tokenizer
    max_length: int = sys.maxsize
    is_whole: bool = True

    @classmethod
    def open(cls, opened: OpenModel, loading: WordVectorSettings) -> Self:
        """Load the encoder of a BERT, or the word vectors of a network of bertkit's studies."""
        if is_own_network(opened.checkpoint.config):
            resolve_layers([loading.layer], 0)
            return cls.load(opened)
        config, tokenizer = opened.config, opened.tokenizer
        max_length = find_max_length(config, opened.model_max_length)
        layers = resolve_layers([loading.layer], config.num_hidden_layers)
        if layers == (0,):
            return cls(opened.read_arrays(ENCODER)[WORDS], tokenizer, max_length)
        return cls(open_engine(opened, loading, ENCODER, layers), tokenizer, max_length)

    @classmethod
    def load(cls, opened: OpenModel) -> Self:
        """Read the table of a network of bertkit's studies, such as skip-gram vectors."""
        tokenizer = Tokenizer.load(opened.tokenizer_folder)
        table = opened.checkpoint.tensors.get(OWN_TABLE)
        if table is None or len(table.shape) != 2 or table.shape[0] < tokenizer.vocab_size:
            raise CheckpointError(
                f"{opened.folder} has no vector for each of the {tokenizer.vocab_size:,} entries of"
                f" its vocabulary (a tensor {OWN_TABLE}); choose another model"
            )
        return cls(table.read_float32(), tokenizer, is_whole=False)


class WordVectors(Loadable):
    """A vector for each entry of a model's vocabulary.

    At layer 0 these are the word embeddings themselves. At a higher layer each is the hidden state
    of its entry alone, `[CLS] entry [SEP]`; the first query runs all entries through the model.
    Skip-gram vectors have layer 0 alone, and entries without a vector aren't among the results.

    Args:
        table: the vectors, or what computes them.
        all_entries: find pieces, special and unused entries, too.

    Examples:
        >>> vectors = WordVectors.load("run/")  # doctest: +SKIP
        >>> vectors.nearest(["kitten", "dog"], ["puppy"]).neighbors[0].token  # doctest: +SKIP
        'cat'
    """

    bundled = "vectors"
    loading_kind = WordVectorSettings

    def __init__(self, table: WordTable, *, all_entries: bool = False) -> None:
        self._tokenizer, self._source = table.tokenizer, table.vectors
        self.layer = self._source.layers[0] if isinstance(self._source, Engine) else 0
        self._max_pieces = table.max_length - self._tokenizer.num_special()
        self._entries = list(range(self._tokenizer.vocab_size))
        if not all_entries:  # whole words: no pieces, special or unused entries
            left_out = self._tokenizer.special_ids | self._tokenizer.unused_ids
            continues = self._tokenizer.is_continuation.tolist()
            is_piece = [
                own or (len(name) > 2 and name.startswith(("##", "\\x")))  # \x: half a character
                for own, name in zip(continues, self._tokenizer.descriptions, strict=True)
            ]
            self._entries = [id_ for id_ in self._entries if not (is_piece[id_] or id_ in left_out)]
        if not isinstance(self._source, Engine) and not table.is_whole:
            has_vector = np.any(self._source, axis=1).tolist()
            self._entries = [token_id for token_id in self._entries if has_vector[token_id]]

    @classmethod
    def build(cls, opened: OpenModel, loading: WordVectorSettings) -> Self:
        """Load the encoder of any checkpoint, or the word vectors of a network of the studies.

        Raises:
            SettingsError: the model has no such layer, or the engine can't run the model.
            MissingExtraError: the engine isn't installed.
        """
        return cls(WordTable.open(opened, loading), all_entries=loading.all_entries)

    def nearest(
        self, plus: str | Sequence[str], minus: str | Sequence[str] = (), *, top_k: int = 10
    ) -> Neighbors:
        """Find the entries nearest to a word, or to a sum of words.

        Each word's vector is normalized before it is added or subtracted. The words themselves and
        their pieces are never among the results.

        Args:
            plus: a word, or words to add.
            minus: a word, or words to subtract.
            top_k: number of entries; all if there are fewer.

        Raises:
            InputError: there is no word, a word isn't covered by the vocabulary or is too long, or
                the words cancel each other out.
            NonFiniteError: the vectors aren't finite.

        Source: Mikolov et al. 2013, "Linguistic Regularities in Continuous Space Word
            Representations", section 5, which Levy and Goldberg 2014 call 3CosAdd.
        """
        if top_k < 1:
            raise InputError(f"top_k must be at least 1, got {top_k}")
        added = tuple(map(self._find, [plus] if isinstance(plus, str) else plus))
        taken = tuple(map(self._find, [minus] if isinstance(minus, str) else minus))
        if not added:
            raise InputError("no word to look up; give at least one")
        vectors = [*map(self._unit_vector, added), *(-self._unit_vector(word) for word in taken)]
        target: Vector = np.sum(vectors, axis=0)
        length = np.linalg.norm(target)
        if not length > MIN_LENGTH:
            sum_ = "".join([*(f" + {w.word}" for w in added), *(f" - {w.word}" for w in taken)])
            raise InputError(
                f"{sum_[3:]} has length 0 at layer {self.layer}, and nothing is near it"
            )
        left_out = {token_id for word in (*added, *taken) for token_id in word.token_ids}
        ranked = self._rank(target / length, top_k, left_out)
        return Neighbors(added, taken, self.layer, ranked)

    def vector(self, word: str) -> Vector:
        """Return a word's vector, `[features]`, normalized; a zero vector stays zero.

        Raises:
            InputError: the word isn't covered by the vocabulary, or is too long.
        """
        return self._unit_vector(self._find(word))

    def _find(self, word: str) -> NamedWord:
        """Find the entries of a word: the entry with that exact spelling, or else its pieces."""
        tokenizer = self._tokenizer
        exact = tokenizer.find_entry(word)
        ids = tokenizer.word_piece_ids([word])[0] if exact is None else [exact]
        pieces = tuple(map(tokenizer.describe_piece, ids))
        if not ids or (exact is None and tokenizer.unk_id in ids):
            shown = " ".join(pieces) or "none"
            raise InputError(
                f"the word {word[:40]!r} isn't covered by the vocabulary (tokens:"
                f" {shown}); use another word"
            )
        if len(ids) > self._max_pieces:
            raise InputError(
                f"the word {word[:40]!r} has {pluralize(len(ids), 'piece')}, and the model takes"
                f" {self._max_pieces}; shorten it"
            )
        return NamedWord(word, pieces, tuple(ids))

    @np.errstate(over="ignore", invalid="ignore")  # `_lengths` tells
    def _unit_vector(self, word: NamedWord) -> Vector:
        """Return a word's vector, normalized; a zero vector stays zero."""
        if isinstance(self._source, Engine):
            pieces = self._read_alone(self._source, [word.token_ids])
        else:
            pieces = self._source[list(word.token_ids)]
        vector: Vector = normalize(pieces.mean(axis=0, keepdims=True))[0]
        return vector

    def _rank(self, target: Vector, top_k: int, left_out: set[int]) -> tuple[Neighbor, ...]:
        """Find the entries nearest to a unit vector."""
        lengths = self._lengths
        similarities = self._vectors @ target / lengths
        order = np.argsort(-similarities, kind="stable")[: top_k + len(left_out)]
        ids = [self._entries[number] for number in order.tolist()]
        neighbors = [
            Neighbor(self._tokenizer.describe_piece(token_id), token_id, similarity)
            for token_id, similarity in zip(ids, similarities[order].tolist(), strict=True)
            if token_id not in left_out
        ]
        return tuple(neighbors[:top_k])

    @cached_property
    def _vectors(self) -> Vectors:
        """The vectors of all entries that may be results."""
        if not isinstance(self._source, Engine):
            return self._source[self._entries]
        parts, engine = list[Vectors](), self._source
        num_at_once = max(1, engine.tokens_per_batch // (self._tokenizer.num_special() + 1))
        with show_progress("Encoding the vocabulary", len(self._entries)) as progress:
            for start in range(0, len(self._entries), num_at_once):
                ids = self._entries[start : start + num_at_once]
                states = self._read_alone(engine, [(token_id,) for token_id in ids])
                parts.append(states)
                progress.advance(len(ids))
        return np.concatenate(parts)

    @cached_property
    @np.errstate(over="ignore")
    def _lengths(self) -> Vector:
        """The lengths of these vectors, for the cosine."""
        norms = np.linalg.norm(self._vectors, axis=1)
        check_finite(norms, f"the vectors of layer {self.layer}")
        lengths: Vector = np.maximum(norms, SMALLEST)  # cosine 0 for zero vectors
        return lengths

    def _read_alone(self, engine: Engine, words: Sequence[tuple[int, ...]]) -> Vectors:
        """Compute the hidden states of words' pieces, each word encoded alone."""
        batch = PackedIds.from_single([self._tokenizer.join(ids)[0] for ids in words])
        [begin] = self._tokenizer.find_starts(0)
        places = [
            first + begin + place
            for first, ids in zip(batch.first_tokens.tolist(), words, strict=True)
            for place in range(len(ids))
        ]
        return engine(batch)[0][places]
