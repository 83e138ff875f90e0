"""The interface of engines, which compute what a model gives for a packed batch, in NumPy.

This file doesn't import torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from copy import copy
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from bertkit.base.errors import NonFiniteError, SettingsError
from bertkit.inference.settings import Precision
from bertkit.models.bert.config import BertConfig
from bertkit.nn.packed_ids import PackedIds

if TYPE_CHECKING:
    from jaxtyping import Float32, Int64

ROWS_AT_A_TIME = 128  # scores of the whole vocabulary are the largest array of a prediction


class Engine(ABC):
    """A model that is ready to run in one of several runtimes; several threads may call it."""

    name: ClassVar[str]
    config: BertConfig
    precision: Precision  # of the matrix products of the encoder; heads compute in float32
    layers: tuple[int, ...]  # 0 for the embeddings, n for block n
    tokens_per_batch: int  # approximate batch size at which it is fastest
    has_pooler: bool  # whether `pool` may be called

    @abstractmethod
    def __call__(self, ids: PackedIds) -> list[Float32[np.ndarray, "tokens hidden"]]:
        """Compute hidden states, one array for each of `layers`."""

    @abstractmethod
    def pool(
        self, tokens: Float32[np.ndarray, "tokens hidden"], ids: PackedIds
    ) -> Float32[np.ndarray, "sequences hidden"]:
        """Compute C of each sequence, the pooler's output, from the last layer's hidden states."""

    @abstractmethod
    def logits(self, ids: PackedIds) -> Float32[np.ndarray, "rows ..."]:
        """Compute the logits of a fine-tuning head: a row for each sequence, or each token."""

    @abstractmethod
    def score_words(
        self, ids: PackedIds, places: Int64[np.ndarray, " chosen"]
    ) -> Iterator[Float32[np.ndarray, "rows vocabulary"]]:
        """Yield logits of all words for some tokens of the batch, some rows at a time."""

    @abstractmethod
    def score_pairs(self, ids: PackedIds) -> Float32[np.ndarray, "sequences 2"]:
        """Compute logits of "B follows A" (0) and "it doesn't" (1)."""

    def change_layers(self, layers: Iterable[int]) -> Self:
        """Return an engine for the hidden states of other layers, which shares the weights."""
        changed = copy(self)
        changed.layers = resolve_layers(layers, self.config.num_hidden_layers)
        return changed


def resolve_layers(layers: Iterable[int], num_hidden_layers: int) -> tuple[int, ...]:
    """Convert negative layers (-1 is the last block) to indexes; 0 is the embeddings."""
    requested = tuple(layers)
    if not requested:
        raise SettingsError("layers is empty; give at least one layer, such as -1 for the last")
    for layer in requested:
        if not -num_hidden_layers <= layer <= num_hidden_layers:
            raise SettingsError(
                f"there is no layer {layer}: this model has 0 (the embeddings) to"
                f" {num_hidden_layers}, or -{num_hidden_layers} to -1 from the end"
            )
    return tuple(layer if layer >= 0 else num_hidden_layers + 1 + layer for layer in requested)


def check_finite(values: Float32[np.ndarray, ...], what: str) -> None:
    """Raise NonFiniteError if a value that a model gave isn't finite; `what` names the values."""
    if not np.isfinite(values).all():
        raise NonFiniteError(f"{what} aren't finite; check the model with `bertkit inspect`")
