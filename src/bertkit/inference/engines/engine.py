"""The interface of engines, which compute the hidden states of a packed batch."""

from collections.abc import Iterable
from copy import deepcopy
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import NonFiniteError, SettingsError
from bertkit.base.own_thread import in_own_thread
from bertkit.inference.settings import Precision
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder
from bertkit.nn.packing import PackedBatch


class HasEncoder(Protocol):
    """Any bertkit model with an encoder."""

    config: BertConfig
    encoder: BertEncoder


class Engine(Protocol):
    """An encoder that is ready to run in one of several runtimes."""

    name: str
    encoder: BertEncoder  # that it computes; with int8 the one in float32 that it was made from
    precision: Precision  # of its matrix products
    layers: tuple[int, ...]  # 0 for the embeddings, n for block n
    tokens_per_batch: int  # approximate batch size at which it is fastest

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


def check_finite(values: Float[Tensor, "..."], what: str) -> None:
    """Raise NonFiniteError if a value that a model gave isn't finite; `what` names the values."""
    if not values.isfinite().all():
        raise NonFiniteError(f"{what} aren't finite; check the model with `bertkit inspect`")


# On a CPU a batch should fit in the cache; a GPU needs work for all its cores.
TOKENS_PER_BATCH = {"cpu": 2048, "cuda": 65536}


class TorchEngine:
    """Runs a model's own encoder, on the model's device; in bf16, a copy of the encoder.

    The model is set to evaluation mode, and must be in it whenever the engine runs: in training
    mode, dropout applies here too. `layers` are as in `resolve_layers`.
    """

    name = "torch"

    def __init__(
        self,
        model: HasEncoder,
        layers: Iterable[int] = (-1,),
        precision: Precision = "fp32",
    ) -> None:
        self.precision = precision
        self.layers = resolve_layers(layers, model.config.num_hidden_layers)
        encoder = model.encoder.eval()
        self.encoder = copy_in_bf16(encoder) if precision == "bf16" else encoder
        self._device = self.encoder.embeddings.word.weight.device
        self.tokens_per_batch = TOKENS_PER_BATCH[self._device.type]

    @torch.inference_mode()
    def __call__(self, batch: PackedBatch) -> list[Float[Tensor, "tokens hidden"]]:
        """Compute hidden states in float32, on the model's device, one tensor per layer."""
        states: dict[int, Tensor] = {}
        last = max(self.layers)
        for layer, tokens in enumerate(self.encoder.hidden_states(batch.to(self._device))):
            if layer in self.layers:
                states[layer] = tokens.float()
            if layer == last:
                break
        return [states[layer] for layer in self.layers]


@in_own_thread
def copy_in_bf16(encoder: BertEncoder) -> BertEncoder:
    """Return a copy of an encoder whose weights are bf16."""
    return deepcopy(encoder).bfloat16()
