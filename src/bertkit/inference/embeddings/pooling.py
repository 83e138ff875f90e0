"""Pooling of the hidden states of a text's tokens to one vector.

Source: Reimers and Gurevych 2019, "Sentence-BERT", section 3, and the sentence-transformers
library; first and last layer, and the last four, as in Li et al. 2020, "On the Sentence Embeddings
from Pre-trained Language Models", and Devlin et al. 2018, section 5.3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import SettingsError
from bertkit.checkpoints import sentence_modules
from bertkit.checkpoints.sentence_transformers import SentenceModel
from bertkit.inference.activations import gelu, relu, sigmoid, silu
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.nn.packed_ids import PackedIds, reduce_sequences

Tokens: TypeAlias = npt.NDArray[np.float32]  # `[tokens, hidden]`
Vectors: TypeAlias = npt.NDArray[np.float32]  # `[texts, features]`
Numbers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Span:
    """The tokens of a packed batch of texts that are pooled."""

    ids: PackedIds
    places: Numbers | None  # indexes in the batch; None for all
    positions: Numbers  # of each pooled token in its own text
    lengths: Numbers  # pooled tokens of each text, at least one

    @classmethod
    def of(cls, ids: PackedIds, num_skipped: Sequence[int]) -> Self:
        """Select all tokens but the first `num_skipped` of each text: [CLS] and the prompt."""
        lengths = np.array(ids.lengths)
        if not any(num_skipped):
            return cls(ids, None, ids.position_ids, lengths)
        skipped = np.array(num_skipped)
        places = np.flatnonzero(ids.position_ids >= skipped.repeat(lengths))
        return cls(ids, places, ids.position_ids[places], lengths - skipped)

    def counted(self, tokens: Tokens) -> Tokens:
        """Return the rows of the pooled tokens."""
        return tokens if self.places is None else tokens[self.places]

    def reduce(self, tokens: Tokens, how: np.ufunc = np.add) -> Vectors:
        """Return the sum of each text's pooled tokens, or what another function makes of them."""
        return reduce_sequences(self.counted(tokens), self.lengths.tolist(), how)

    def average(self, tokens: Tokens) -> Vectors:
        """Return the mean of each text's pooled tokens."""
        means: Vectors = self.reduce(tokens) / self.lengths.astype(np.float32)[:, None]
        return means


LAST = (-1,)
LAST_FOUR = (-1, -2, -3, -4)


@dataclass(frozen=True)
class TokenPooling:
    """A pooling method, with the layers that it needs, as in `resolve_layers`."""

    layers: tuple[int, ...]
    pool: Callable[[Sequence[Tokens], Span], Vectors]
    num_parts: int = 1  # size of its result as a multiple of the hidden size


def take_weighted_mean(tokens: Tokens, span: Span) -> Vectors:
    """Average the tokens, weighted by their position in the text, from 1."""
    weights = (span.positions + 1).astype(np.float32)[:, None]
    lengths = span.lengths.tolist()
    sums = reduce_sequences(span.counted(tokens) * weights, lengths)
    means: Vectors = sums / reduce_sequences(weights, lengths)
    return means


def take_scaled_mean(tokens: Tokens, span: Span) -> Vectors:
    """Divide the sum of the tokens by the square root of their number."""
    roots = np.sqrt(span.lengths).astype(np.float32)
    means: Vectors = span.reduce(tokens) / roots[:, None]
    return means


def _of_last(pool: Callable[[Tokens, Span], Vectors]) -> TokenPooling:
    return TokenPooling(LAST, lambda layers, span: pool(layers[0], span))


POOLINGS: dict[str, TokenPooling] = {
    # [CLS], even if it is left out of the span
    "cls": _of_last(lambda tokens, span: tokens[span.ids.first_tokens]),
    "mean": _of_last(lambda tokens, span: span.average(tokens)),
    "max": _of_last(lambda tokens, span: span.reduce(tokens, np.maximum)),
    "mean_sqrt_len_tokens": _of_last(take_scaled_mean),
    "weightedmean": _of_last(take_weighted_mean),
    # the last token is [SEP]
    "lasttoken": _of_last(lambda tokens, span: span.counted(tokens)[span.lengths.cumsum() - 1]),
    "first_last_mean": TokenPooling(
        (1, -1), lambda layers, span: span.average(np.mean(layers, axis=0))
    ),
    "last_four_concat": TokenPooling(
        LAST_FOUR,
        lambda layers, span: np.concatenate([span.average(layer) for layer in layers], axis=1),
        num_parts=len(LAST_FOUR),
    ),
    "last_four_sum": TokenPooling(
        LAST_FOUR, lambda layers, span: span.average(np.sum(layers, axis=0))
    ),
}


DEFAULT_POOLING = ("mean",)


LEAST_LENGTH = 1e-12  # a shorter vector is divided by this one


def normalize(vectors: Vectors) -> Vectors:
    """Scale each vector to Euclidean length 1; zero vectors stay zero."""
    lengths = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    scaled: Vectors = vectors / np.maximum(lengths, LEAST_LENGTH)
    return scaled


def truncate(vectors: Vectors, *, size: int) -> Vectors:
    """Return the first features of each vector."""
    return vectors[:, :size]


# Functions by the names of `checkpoints.sentence_modules.ACTIVATIONS`.
ACTIVATIONS: dict[str, Callable[[Vectors], Vectors]] = {
    "identity": lambda values: values,
    "tanh": np.tanh,
    "relu": relu,
    "gelu": gelu,
    "sigmoid": sigmoid,
    "silu": silu,
}


@dataclass(frozen=True)
class DenseLayer:
    """A linear layer and its activation, a key of `ACTIVATIONS`."""

    weight: npt.NDArray[np.float32]  # `[out, in]`
    bias: npt.NDArray[np.float32] | None  # `[out]`
    activation: str

    def __call__(self, vectors: Vectors) -> Vectors:
        """Compute the layer for each vector."""
        products = vectors @ self.weight.T
        return ACTIVATIONS[self.activation](products if self.bias is None else products + self.bias)


def read_dense(module: sentence_modules.Dense) -> DenseLayer:
    """Read a dense module of a sentence-transformers folder."""
    bias = None if module.bias is None else module.bias.read_float32()
    return DenseLayer(module.weight.read_float32(), bias, module.activation)


@dataclass(frozen=True)
class SentenceHead:
    """Turns the hidden states of a batch into one vector per text.

    The steps that follow pooling, by name, are dense layers, normalization and truncation.
    """

    poolings: tuple[str, ...]  # keys of `POOLINGS`, whose results are concatenated in this order
    steps: tuple[tuple[str, Callable[[Vectors], Vectors]], ...]
    dimension: int  # features of a finished vector
    includes_prompt: bool = True  # whether the tokens of a prompt are pooled

    @classmethod
    def build(
        cls, model: SentenceModel | None, settings: EmbedderSettings, hidden_size: int
    ) -> Self:
        """Build the head from a sentence-transformers folder's modules, if any, and the settings.

        The settings override the modules.
        """
        modules = model.modules if model else ()
        usual = next((one for one in modules if isinstance(one, sentence_modules.Pooling)), None)
        poolings = settings.pooling or (usual.modes if usual else DEFAULT_POOLING)
        dimension = hidden_size * sum(POOLINGS[name].num_parts for name in poolings)
        steps: list[tuple[str, Callable[[Vectors], Vectors]]] = []
        for module in modules:
            match module:
                case sentence_modules.Dense() if settings.pooling is None:
                    name = f"dense {module.out_features} {module.activation}"
                    steps.append((name, read_dense(module)))
                    dimension = module.out_features
                case sentence_modules.Normalize() if settings.normalize is not False:
                    steps.append(("normalize", normalize))
        includes_prompt = usual is None or usual.include_prompt
        head = cls(poolings, tuple(steps), dimension, includes_prompt)
        most = (model.truncate_dimension if model else None) or dimension
        head = head.cut(settings.dimensions or min(most, dimension))
        return head.scaled(is_scaled=True) if settings.normalize else head

    def cut(self, size: int) -> Self:
        """Return the head with so many features, the first ones; SettingsError if it has fewer."""
        if size > self.dimension:
            raise SettingsError(
                f"dimensions is {size}, and a vector has only {self.dimension} features; lower it"
            )
        if size == self.dimension:
            return self
        step = f"first {size}", partial(truncate, size=size)
        return replace(self, steps=(*self.steps, step), dimension=size)

    def scaled(self, *, is_scaled: bool) -> Self:
        """Return the head with vectors scaled to length 1 at the end, or without any scaling."""
        if not is_scaled:
            return replace(self, steps=tuple(one for one in self.steps if one[0] != "normalize"))
        if self.is_scaled:
            return self
        return replace(self, steps=(*self.steps, ("normalize", normalize)))

    @property
    def is_scaled(self) -> bool:
        """Whether vectors are scaled to length 1 at the end."""
        return bool(self.steps) and self.steps[-1][0] == "normalize"

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers whose hidden states it needs, without duplicates, as in `resolve_layers`."""
        return tuple(
            dict.fromkeys(layer for name in self.poolings for layer in POOLINGS[name].layers)
        )

    @property
    def description(self) -> str:
        """All poolings and the functions that follow them, in one line."""
        return " → ".join([" + ".join(self.poolings), *(name for name, _ in self.steps)])

    def pool(self, states: Sequence[Tokens], span: Span) -> Vectors:
        """Pool the hidden states of `layers` to one vector per sequence."""
        of_layer = dict(zip(self.layers, states, strict=True))
        parts = [
            POOLINGS[name].pool([of_layer[layer] for layer in POOLINGS[name].layers], span)
            for name in self.poolings
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def finish(self, vectors: Vectors) -> Vectors:
        """Apply the functions that follow pooling."""
        for _, step in self.steps:
            vectors = step(vectors)
        return vectors
