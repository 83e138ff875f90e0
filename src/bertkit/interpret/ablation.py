"""Ablate attention heads, or scale their output.

A gate multiplies a head's context before the output projection: 1 leaves the model unchanged, 0
removes the head's contribution.

Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 2.3.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.inference.engines.engine import HasEncoder
from bertkit.interpret.capture import list_attention
from bertkit.interpret.head_names import check_heads
from bertkit.models.bert.encoder import BertEncoder
from bertkit.nn.attention import SelfAttention


@contextmanager
def ablate(model: HasEncoder, heads: Iterable[tuple[int, int]]) -> Iterator[None]:
    """Switch heads off in all forward passes inside the `with` block.

    A predictor loaded with `engine="torch", precision="fp32"` runs the model's own encoder, so the
    heads are off there too. In bf16 it runs a copy, and ONNX Runtime a graph of its own: there they
    stay on.

    Examples:
        classifier = Classifier.load("sentiment/", engine="torch", precision="fp32")
        with ablate(classifier.loaded.model, [(5, 3), (5, 4)]):
            without = classifier("a gripping film")

    Args:
        model: any bertkit model with an encoder.
        heads: the (layer, head) pairs to switch off, both from 1.
    """
    names = check_heads(heads, model.config)
    gates = torch.ones(model.config.num_hidden_layers, model.config.num_attention_heads)
    for name in names:
        gates[name.layer - 1, name.head - 1] = 0.0
    with gate_heads(model.encoder, gates):
        yield


@contextmanager
def gate_heads(encoder: BertEncoder, gates: Float[Tensor, "layers heads"]) -> Iterator[None]:
    """Multiply each head's context by its gate in all forward passes inside the `with` block.

    Args:
        encoder: the encoder of any model.
        gates: the factors; they may require gradients.
    """
    with ExitStack() as hooks:
        for attention, gate in zip(list_attention(encoder), gates, strict=True):
            hooks.callback(_gate(attention, gate).remove)
        yield


def _gate(attention: SelfAttention, gate: Float[Tensor, " heads"]) -> Any:
    """Register a hook before the output projection of a layer's attention."""

    def scale(_: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        (rows,) = inputs
        heads = rows.view(len(rows), attention.num_heads, -1)
        return ((heads * gate.to(rows)[:, None]).flatten(start_dim=1),)

    return attention.output.register_forward_pre_hook(scale)
