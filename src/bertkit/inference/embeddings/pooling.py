"""Pooling of the hidden states of a text's tokens to one vector.

Source: Reimers and Gurevych 2019, "Sentence-BERT", section 3, and the sentence-transformers
library; first and last layer, and the last four, as in Li et al. 2020, "On the Sentence Embeddings
from Pre-trained Language Models", and Devlin et al. 2018, section 5.3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self, TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.base.errors import SettingsError
from bertkit.base.own_thread import in_own_thread
from bertkit.checkpoints import sentence_modules
from bertkit.checkpoints.sentence_transformers import SentenceModel
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.models.bert.sentence_bert import ACTIVATIONS
from bertkit.nn.packing import PackedBatch

Tokens: TypeAlias = Float[Tensor, "tokens hidden"]
Vectors: TypeAlias = Float[Tensor, "texts features"]


@dataclass(frozen=True)
class Span:
    """The tokens of a packed batch of texts that are pooled."""

    batch: PackedBatch
    places: Int[Tensor, " counted"] | None  # indexes of the tokens in the batch; None for all
    positions: Int[Tensor, " counted"]  # of each pooled token in its own text
    lengths: Int[Tensor, " texts"]  # pooled tokens of each text, at least one

    @classmethod
    def of(cls, batch: PackedBatch, num_skipped: Sequence[int]) -> Self:
        """Select all tokens but the first `num_skipped` of each text: [CLS] and the prompt."""
        device = batch.input_ids.device
        lengths = torch.tensor(batch.lengths, device=device)
        if not any(num_skipped):
            return cls(batch, None, batch.position_ids, lengths)
        skipped = torch.tensor(num_skipped, device=device)
        is_counted = batch.position_ids >= skipped.repeat_interleave(lengths)
        places = is_counted.nonzero()[:, 0]
        return cls(batch, places, batch.position_ids[places], lengths - skipped)

    def counted(self, tokens: Tokens) -> Float[Tensor, "counted hidden"]:
        """Return the rows of the pooled tokens."""
        return tokens if self.places is None else tokens[self.places]

    def reduce(self, tokens: Tokens, how: str) -> Vectors:
        """Return the "mean", "max" or "sum" of each text's pooled tokens."""
        return torch.segment_reduce(self.counted(tokens), how, lengths=self.lengths)


LAST = (-1,)
LAST_FOUR = (-1, -2, -3, -4)


@dataclass(frozen=True)
class TokenPooling:
    """A pooling method, with the layers that it needs, as in `resolve_layers`."""

    layers: tuple[int, ...]
    pool: Callable[[Sequence[Tensor], Span], Tensor]
    num_parts: int = 1  # size of its result as a multiple of the hidden size


def take_weighted_mean(tokens: Tokens, span: Span) -> Vectors:
    """Average the tokens, weighted by their position in the text, from 1."""
    weights = (span.positions + 1).to(tokens.dtype)
    sums = torch.segment_reduce(
        span.counted(tokens) * weights[:, None], "sum", lengths=span.lengths
    )
    return sums / torch.segment_reduce(weights, "sum", lengths=span.lengths)[:, None]


def _of_last(pool: Callable[[Tensor, Span], Tensor]) -> TokenPooling:
    return TokenPooling(LAST, lambda layers, span: pool(layers[0], span))


POOLINGS: dict[str, TokenPooling] = {
    # [CLS], even if it is left out of the span
    "cls": _of_last(lambda tokens, span: tokens[span.batch.first_tokens.long()]),
    "mean": _of_last(lambda tokens, span: span.reduce(tokens, "mean")),
    "max": _of_last(lambda tokens, span: span.reduce(tokens, "max")),
    "mean_sqrt_len_tokens": _of_last(
        lambda tokens, span: span.reduce(tokens, "mean") * span.lengths.sqrt()[:, None]
    ),
    "weightedmean": _of_last(take_weighted_mean),
    # the last token is [SEP]
    "lasttoken": _of_last(lambda tokens, span: span.counted(tokens)[span.lengths.cumsum(0) - 1]),
    "first_last_mean": TokenPooling(
        (1, -1), lambda layers, span: span.reduce(torch.stack(tuple(layers)).mean(dim=0), "mean")
    ),
    "last_four_concat": TokenPooling(
        LAST_FOUR,
        lambda layers, span: torch.cat([span.reduce(layer, "mean") for layer in layers], dim=1),
        num_parts=len(LAST_FOUR),
    ),
    "last_four_sum": TokenPooling(
        LAST_FOUR, lambda layers, span: span.reduce(torch.stack(tuple(layers)).sum(dim=0), "mean")
    ),
}


DEFAULT_POOLING = ("mean",)


def normalize(vectors: Float[Tensor, "texts features"]) -> Float[Tensor, "texts features"]:
    """Scale each vector to Euclidean length 1; zero vectors stay zero."""
    return F.normalize(vectors, dim=1)


def truncate(vectors: Float[Tensor, "texts features"], *, size: int) -> Float[Tensor, "texts size"]:
    """Return the first features of each vector."""
    return vectors[:, :size]


@dataclass(frozen=True)
class DenseLayer:
    """A linear layer and its activation, a key of `ACTIVATIONS`."""

    weight: Float[Tensor, "out in"]
    bias: Float[Tensor, " out"] | None
    activation: str

    def __call__(self, vectors: Float[Tensor, "texts in"]) -> Float[Tensor, "texts out"]:
        """Compute the layer for each vector."""
        return ACTIVATIONS[self.activation](F.linear(vectors, self.weight, self.bias))


@in_own_thread
def read_dense(module: sentence_modules.Dense, device: torch.device) -> DenseLayer:
    """Read a dense module of a sentence-transformers folder."""
    weight = module.weight.read().float().to(device)
    bias = None if module.bias is None else module.bias.read().float().to(device)
    return DenseLayer(weight, bias, module.activation)


@dataclass(frozen=True)
class SentenceHead:
    """Turns the hidden states of a batch into one vector per text.

    The steps that follow pooling, by name, are dense layers, normalization and truncation.
    """

    poolings: tuple[str, ...]  # keys of `POOLINGS`, whose results are concatenated in this order
    steps: tuple[tuple[str, Callable[[Tensor], Tensor]], ...]
    dimension: int  # features of a finished vector
    includes_prompt: bool = True  # whether the tokens of a prompt are pooled

    @classmethod
    def build(
        cls,
        model: SentenceModel | None,
        settings: EmbedderSettings,
        hidden_size: int,
        device: torch.device,
    ) -> Self:
        """Build the head from a sentence-transformers folder's modules, if any, and the settings.

        The settings override the modules.
        """
        modules = model.modules if model else ()
        usual = next((one for one in modules if isinstance(one, sentence_modules.Pooling)), None)
        poolings = settings.pooling or (usual.modes if usual else DEFAULT_POOLING)
        dimension = hidden_size * sum(POOLINGS[name].num_parts for name in poolings)
        steps: list[tuple[str, Callable[[Tensor], Tensor]]] = []
        for module in modules:
            match module:
                case sentence_modules.Dense() if settings.pooling is None:
                    name = f"dense {module.out_features} {module.activation}"
                    steps.append((name, read_dense(module, device)))
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

    def pool(
        self, states: Sequence[Float[Tensor, "tokens hidden"]], span: Span
    ) -> Float[Tensor, "sequences features"]:
        """Pool the hidden states of `layers` to one vector per sequence."""
        of_layer = dict(zip(self.layers, states, strict=True))
        parts = [
            POOLINGS[name].pool([of_layer[layer] for layer in POOLINGS[name].layers], span)
            for name in self.poolings
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def finish(self, vectors: Float[Tensor, "texts pooled"]) -> Float[Tensor, "texts features"]:
        """Apply the functions that follow pooling."""
        for _, step in self.steps:
            vectors = step(vectors)
        return vectors
