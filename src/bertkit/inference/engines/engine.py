"""The interface of engines, which compute the hidden states of a packed batch."""

from collections.abc import Iterable
from typing import Protocol

from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import SettingsError
from bertkit.inference.engines.names import Precision
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder
from bertkit.nn.packing import PackedBatch


class HasEncoder(Protocol):
    """Any bertkit model with an encoder."""

    config: BertConfig
    encoder: BertEncoder


class Engine(Protocol):
    """An encoder that is ready to run in one of several runtimes.

    Attributes:
        name: its key in `ENGINES`.
        precision: of its matrix products.
        layers: layers whose hidden states it returns: 0 for the embeddings, n for block n.
        tokens_per_batch: approximate batch size in tokens at which it is fastest.
    """

    name: str
    precision: Precision
    layers: tuple[int, ...]
    tokens_per_batch: int

    def __call__(self, batch: PackedBatch) -> list[Float[Tensor, "tokens hidden"]]:
        """Compute hidden states in float32, on the model's device, one tensor per layer."""


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
