"""The layers of an encoder: attention and feed-forward, each with residual and layer norm.

Source: Vaswani et al. 2017, section 3.1; Devlin et al. 2018, section 3.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from bertkit.nn.attention import SelfAttention, TokenBatch
from bertkit.nn.dropout import drop
from bertkit.nn.parts import BERT_PARTS, EncoderParts


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

    Gated, the activation of one half of the first layer is multiplied by the other half.

    Args:
        activation: a key of `ACTIVATIONS`.
        dropout_rate: dropout before the second layer.

    Source of the gate: Shazeer 2020, "GLU Variants Improve Transformer".
    """

    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        activation: str,
        *,
        dropout_rate: float = 0.0,
        parts: EncoderParts = BERT_PARTS,
    ) -> None:
        super().__init__()
        self.is_gated, self.dropout_rate = parts.is_gated, dropout_rate
        width = intermediate_size * (2 if parts.is_gated else 1)
        self.up = nn.Linear(hidden_size, width, bias=parts.has_biases)
        self.activation = ACTIVATIONS[activation]
        self.down = nn.Linear(intermediate_size, hidden_size, bias=parts.has_biases)

    def forward(self, tokens: Float[Tensor, "tokens hidden"]) -> Float[Tensor, "tokens hidden"]:
        """Project up, apply the activation and the gate, project down."""
        raised: Tensor = self.up(tokens)
        if self.is_gated:
            activated, gate = raised.chunk(2, dim=-1)
            raised = self.activation(activated) * gate
        else:
            raised = self.activation(raised)
        narrowed: Tensor = self.down(drop(raised, self.dropout_rate) if self.training else raised)
        return narrowed


class Block(nn.Module):
    """Sub-layers, each with dropout and residual, and layer normalization after it or before.

    Args:
        dropout_rates: of the output of each sub-layer, by name.
        parts: whether layer norms come before sub-layers, and have biases.
        sub_layers: the sub-layers by name, in order; each gets a layer norm, `<name>_norm`.
    """

    attention: SelfAttention
    feed_forward: FeedForward

    def __init__(
        self,
        *,
        hidden_size: int,
        layer_norm_epsilon: float,
        dropout_rates: Mapping[str, float],
        parts: EncoderParts = BERT_PARTS,
        **sub_layers: nn.Module,
    ) -> None:
        super().__init__()
        self.normalizes_first, self.dropout_rates = parts.normalizes_first, dropout_rates
        for name, sub_layer in sub_layers.items():
            norm = nn.LayerNorm(hidden_size, eps=layer_norm_epsilon, bias=parts.has_biases)
            self.add_module(name, sub_layer)
            self.add_module(f"{name}_norm", norm)

    def add(
        self,
        name: str,
        tokens: Float[Tensor, "tokens hidden"],
        *inputs: Any,
        kept: Int[Tensor, " rows"] | None = None,
    ) -> Float[Tensor, "rows hidden"]:
        """Return LayerNorm(x + dropout(sub-layer(x))), or pre-norm x + dropout(sub-layer(norm(x))).

        The sub-layer may compute only the tokens `kept`.
        """
        sub_layer, norm = getattr(self, name), getattr(self, f"{name}_norm")
        read = norm(tokens) if self.normalizes_first else tokens
        residual = tokens if kept is None else tokens[kept]
        computed: Tensor = sub_layer(read, *inputs)
        if self.training:
            computed = drop(computed, self.dropout_rates[name])
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
        bias: Float[Tensor, "heads longest longest"] | None = None,
    ) -> Float[Tensor, "rows hidden"]:
        """Return the states of all tokens, or only of `kept`, which still attend to all."""
        tokens = self.add("attention", tokens, batch, kept, bias, kept=kept)
        return self.add("feed_forward", tokens)
