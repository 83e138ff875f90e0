"""Vectors of single words without context: neighbors and analogies."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import CheckpointError, InputError, pluralize
from bertkit.base.progress import show_progress
from bertkit.checkpoints.huggingface import is_own_network
from bertkit.inference.embeddings.settings import WordVectorSettings
from bertkit.inference.engines.engine import Engine, check_finite, resolve_layers
from bertkit.inference.loading import LoadedModel
from bertkit.inference.pipeline import Loadable, start_engine
from bertkit.models.bert.encoder import BertModel
from bertkit.models.open_model import OpenModel
from bertkit.nn.packed_ids import PackedIds
from bertkit.tokenization.tokenizer import Tokenizer

TOKENS_PER_ENTRY = 3  # [CLS], the entry, [SEP]
MIN_LENGTH = 1e-6  # of a sum of unit vectors; a shorter one is only rounding error
OWN_TABLE = "embeddings.weight"  # the word vectors of a network of bertkit's studies


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
    """The word vectors of a network that isn't a BERT, with its tokenizer."""

    vectors: Float[Tensor, "vocabulary features"]
    tokenizer: Tokenizer
    max_length: int = sys.maxsize

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
        return cls(torch.from_numpy(table.read_float32()), tokenizer)


class WordVectors(Loadable):
    """A vector for each entry of a model's vocabulary.

    At layer 0 these are the word embeddings themselves. At a higher layer each is the hidden state
    of its entry alone, `[CLS] entry [SEP]`; the first query runs all entries through the model.
    Skip-gram vectors have layer 0 alone, and entries without a vector aren't among the results.

    Args:
        loaded: the model, whose heads aren't used; or word vectors alone.
        settings: layer, entries, and the engine for layers above 0.

    Raises:
        SettingsError: the model has no such layer, or the engine can't run the model.
        MissingExtraError: the engine isn't installed.

    Examples:
        >>> vectors = WordVectors.load("run/")  # doctest: +SKIP
        >>> vectors.nearest(["kitten", "dog"], ["puppy"]).neighbors[0].token  # doctest: +SKIP
        'cat'
    """

    bundled = "vectors"
    loading_kind = WordVectorSettings
    _engine: Engine | None

    def __init__(
        self,
        loaded: LoadedModel[BertModel] | WordTable,
        settings: WordVectorSettings | None = None,
    ) -> None:
        settings = settings or WordVectorSettings()
        self._tokenizer, self._engine = loaded.tokenizer, None
        self._max_pieces = loaded.max_length - 2  # beside [CLS] and [SEP]
        self._entries = list(range(self._tokenizer.vocab_size))
        if not settings.all_entries:  # whole words: no pieces, special or unused entries
            left_out = self._tokenizer.special_ids | self._tokenizer.unused_ids
            is_piece = self._tokenizer.is_continuation.tolist()
            self._entries = [id_ for id_ in self._entries if not (is_piece[id_] or id_ in left_out)]
        if isinstance(loaded, WordTable):
            self._table = loaded.vectors
            self.layer = resolve_layers([settings.layer], 0)[0]
            has_vector = self._table.any(dim=1).tolist()
            self._entries = [token_id for token_id in self._entries if has_vector[token_id]]
            return
        self._table = loaded.model.encoder.embeddings.word.weight.detach()
        self.layer = resolve_layers([settings.layer], loaded.model.config.num_hidden_layers)[0]
        if self.layer:
            self._engine = start_engine(loaded.model, settings, [self.layer])

    @classmethod
    def build(cls, opened: OpenModel, loading: WordVectorSettings) -> Self:
        """Load the encoder of any checkpoint, or the word vectors of a network of the studies."""
        if is_own_network(opened.checkpoint.config):
            return cls(WordTable.load(opened), loading)
        return cls(LoadedModel.load(BertModel, opened, loading.device), loading)

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
        target = torch.stack(vectors).sum(dim=0)
        if not target.norm() > MIN_LENGTH:
            sum_ = "".join([*(f" + {w.word}" for w in added), *(f" - {w.word}" for w in taken)])
            raise InputError(
                f"{sum_[3:]} has length 0 at layer {self.layer}, and nothing is near it"
            )
        left_out = {token_id for word in (*added, *taken) for token_id in word.token_ids}
        ranked = self._rank(target / target.norm(), top_k, left_out)
        return Neighbors(added, taken, self.layer, ranked)

    def vector(self, word: str) -> Float[Tensor, " hidden"]:
        """Return a word's vector, normalized; a zero vector stays zero.

        Raises:
            InputError: the word isn't covered by the vocabulary, or is too long.
        """
        return self._unit_vector(self._find(word))

    def _find(self, word: str) -> NamedWord:
        """Find the entries of a word: the entry with that exact spelling, or else its pieces."""
        tokenizer = self._tokenizer
        exact = tokenizer.token_to_id(word)
        ids = tokenizer.piece_ids([word])[0] if exact is None else [exact]
        pieces = tuple(tokenizer.vocabulary[token_id] for token_id in ids)
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

    def _unit_vector(self, word: NamedWord) -> Float[Tensor, " hidden"]:
        """Return a word's vector, normalized; a zero vector stays zero."""
        if self._engine is None:
            pieces = self._table[list(word.token_ids)]
        else:
            pieces = self._read_alone(self._engine, [word.token_ids])[1:-1]
        return torch.nn.functional.normalize(pieces.mean(dim=0), dim=0)

    def _rank(
        self, target: Float[Tensor, " hidden"], top_k: int, left_out: set[int]
    ) -> tuple[Neighbor, ...]:
        """Find the entries nearest to a unit vector."""
        similarities = (self._vectors @ target / self._lengths).cpu()
        order = similarities.sort(descending=True, stable=True).indices[: top_k + len(left_out)]
        ids = [self._entries[number] for number in order.tolist()]
        neighbors = [
            Neighbor(self._tokenizer.vocabulary[token_id], token_id, similarity)
            for token_id, similarity in zip(ids, similarities[order].tolist(), strict=True)
            if token_id not in left_out
        ]
        return tuple(neighbors[:top_k])

    @cached_property
    def _vectors(self) -> Float[Tensor, "entries hidden"]:
        """The vectors of all entries that may be results."""
        if self._engine is None:
            return self._table[self._entries]
        parts = []
        num_at_once = max(1, self._engine.tokens_per_batch // TOKENS_PER_ENTRY)
        with show_progress("Encoding the vocabulary", len(self._entries)) as progress:
            for start in range(0, len(self._entries), num_at_once):
                ids = self._entries[start : start + num_at_once]
                states = self._read_alone(self._engine, [(token_id,) for token_id in ids])
                parts.append(states[1::TOKENS_PER_ENTRY])
                progress.advance(len(ids))
        return torch.cat(parts)

    @cached_property
    def _lengths(self) -> Float[Tensor, " entries"]:
        """The lengths of these vectors, for the cosine."""
        lengths: Tensor = torch.linalg.vector_norm(self._vectors, dim=1)
        check_finite(lengths.numpy(), f"the vectors of layer {self.layer}")
        return lengths.clamp_min(torch.finfo(lengths.dtype).tiny)  # cosine 0 for zero vectors

    def _read_alone(
        self, engine: Engine, words: Iterable[tuple[int, ...]]
    ) -> Float[Tensor, "tokens hidden"]:
        """Compute the hidden states of words, each encoded alone as `[CLS] pieces [SEP]`."""
        cls_id, sep_id = self._tokenizer.cls_id, self._tokenizer.sep_id
        batch = PackedIds.from_single([[cls_id, *ids, sep_id] for ids in words])
        return torch.from_numpy(engine(batch)[0])
