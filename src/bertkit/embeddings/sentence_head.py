"""The head of a sentence encoder: pooling, dense layers, normalization, truncation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import SettingsError
from bertkit.base.own_thread import in_own_thread
from bertkit.checkpoints.sentence_transformers import modules as sentence_modules
from bertkit.checkpoints.sentence_transformers.folder import SentenceModel
from bertkit.embeddings.pooling import POOLINGS, Span
from bertkit.embeddings.settings import EmbedderSettings

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda values: values,
    "tanh": torch.tanh,
    "relu": F.relu,
    "gelu": F.gelu,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
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

    Attributes:
        poolings: keys of `POOLINGS`, whose results are concatenated in this order.
        steps: named functions that follow: dense layers, normalization and truncation.
        dimension: number of features of a finished vector.
        includes_prompt: whether the tokens of a prompt are pooled.
    """

    poolings: tuple[str, ...]
    steps: tuple[tuple[str, Callable[[Tensor], Tensor]], ...]
    dimension: int
    includes_prompt: bool = True

    @classmethod
    def build(
        cls,
        model: SentenceModel | None,
        settings: EmbedderSettings,
        hidden_size: int,
        device: torch.device,
    ) -> Self:
        """Build the head from the folder's modules and the settings that override them.

        Args:
            model: content of a sentence-transformers folder; None for other models.
            settings: the embedder's settings.
            hidden_size: number of features of a token.
            device: device of the hidden states.
        """
        poolings, includes_prompt = find_poolings(model, settings)
        dimension = hidden_size * sum(POOLINGS[name].num_parts for name in poolings)
        steps: list[tuple[str, Callable[[Tensor], Tensor]]] = []
        for module in model.modules if model else ():
            match module:
                case sentence_modules.Dense() if settings.pooling is None:
                    name = f"dense {module.out_features} {module.activation}"
                    steps.append((name, read_dense(module, device)))
                    dimension = module.out_features
                case sentence_modules.Normalize() if settings.normalize is not False:
                    steps.append(("normalize", normalize))
        size = settings.dimensions or (model.truncate_dimension if model else None)
        if settings.dimensions is not None and settings.dimensions > dimension:
            raise SettingsError(
                f"dimensions is {settings.dimensions}, and a vector has only {dimension} features;"
                " lower it"
            )
        if size is not None and size < dimension:
            steps.append((f"first {size}", partial(truncate, size=size)))
            dimension = size
        if settings.normalize and (not steps or steps[-1][0] != "normalize"):
            steps.append(("normalize", normalize))
        return cls(poolings, tuple(steps), dimension, includes_prompt)

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers whose hidden states it needs, without duplicates, as in `resolve_layers`."""
        return tuple(
            dict.fromkeys(layer for name in self.poolings for layer in POOLINGS[name].layers)
        )

    @property
    def description(self) -> str:
        """All poolings and steps, in one line."""
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
        """Apply all steps after pooling."""
        for _, step in self.steps:
            vectors = step(vectors)
        return vectors


def find_poolings(
    model: SentenceModel | None, settings: EmbedderSettings
) -> tuple[tuple[str, ...], bool]:
    """Find the pooling methods, and whether the tokens of a prompt are pooled."""
    for module in model.modules if model else ():
        if isinstance(module, sentence_modules.Pooling):
            return settings.pooling or module.modes, module.include_prompt
    return settings.pooling or DEFAULT_POOLING, True
