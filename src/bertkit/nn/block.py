"""The layers of an encoder: attention and feed-forward, each with residual and layer norm.

Source: Vaswani et al. 2017, section 3.1; Devlin et al. 2018, section 3.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from bertkit.nn.attention import SelfAttention, TokenBatch
from bertkit.nn.dropout import drop


def gelu_tanh(values: Float[Tensor, " *shape"]) -> Float[Tensor, " *shape"]:
    """Compute GELU by its tanh approximation, as in google-research/bert.

    Source: Hendrycks and Gimpel 2016, section 2.
    """
    return F.gelu(values, approximate="tanh")


# The names that transformers uses; of google-research/bert's, only "linear" is missing.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": gelu_tanh,
    "gelu_python": F.gelu,
    "gelu_pytorch_tanh": gelu_tanh,
    "mish": F.mish,
    "relu": F.relu,
    "silu": F.silu,
    "swish": F.silu,
    "tanh": torch.tanh,
}


class FeedForward(nn.Module):
    """The position-wise feed-forward network: two linear layers, applied to each token separately.

    Args:
        activation: a key of `ACTIVATIONS`.
    """

    def __init__(self, hidden_size: int, intermediate_size: int, activation: str) -> None:
        super().__init__()
        self.up = nn.Linear(hidden_size, intermediate_size)
        self.activation = ACTIVATIONS[activation]
        self.down = nn.Linear(intermediate_size, hidden_size)

    def forward(self, tokens: Float[Tensor, "tokens hidden"]) -> Float[Tensor, "tokens hidden"]:
        """Project up, apply the activation, project down."""
        narrowed: Tensor = self.down(self.activation(self.up(tokens)))
        return narrowed


class Block(nn.Module):
    """Sub-layers, each with dropout and residual, and layer normalization after it or before.

    Args:
        sub_layers: the sub-layers by name, in order; each gets a layer norm, `<name>_norm`.
    """

    normalizes_first: ClassVar[bool] = False
    attention: SelfAttention
    attention_norm: nn.LayerNorm
    feed_forward: FeedForward
    feed_forward_norm: nn.LayerNorm

    def __init__(
        self,
        *,
        hidden_size: int,
        layer_norm_epsilon: float,
        dropout_rate: float,
        **sub_layers: nn.Module,
    ) -> None:
        super().__init__()
        for name, sub_layer in sub_layers.items():
            self.add_module(name, sub_layer)
            self.add_module(f"{name}_norm", nn.LayerNorm(hidden_size, eps=layer_norm_epsilon))
        self.dropout_rate = dropout_rate

    def add(
        self,
        norm: nn.LayerNorm,
        sub_layer: nn.Module,
        tokens: Float[Tensor, "tokens hidden"],
        *inputs: Any,
        kept: Int[Tensor, " rows"] | None = None,
    ) -> Float[Tensor, "rows hidden"]:
        """Return LayerNorm(x + dropout(sub-layer(x))), or pre-norm x + dropout(sub-layer(norm(x))).

        The sub-layer may compute only the tokens `kept`.
        """
        read = norm(tokens) if self.normalizes_first else tokens
        residual = tokens if kept is None else tokens[kept]
        computed: Tensor = sub_layer(read, *inputs)
        if self.training:
            computed = drop(computed, self.dropout_rate)
        summed: Tensor = residual + computed
        del computed  # so that its memory is free before the norm
        higher: Tensor = summed if self.normalizes_first else norm(summed)
        return higher


class EncoderBlock(Block):
    """Attention and feed-forward."""

    def forward(
        self,
        tokens: Float[Tensor, "tokens hidden"],
        batch: TokenBatch,
        kept: Int[Tensor, " rows"] | None = None,
    ) -> Float[Tensor, "rows hidden"]:
        """Return the states of all tokens, or only of `kept`, which still attend to all."""
        tokens = self.add(self.attention_norm, self.attention, tokens, batch, kept, kept=kept)
        return self.add(self.feed_forward_norm, self.feed_forward, tokens)
