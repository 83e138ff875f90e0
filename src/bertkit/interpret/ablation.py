"""Switching heads off, and turning them down by degrees.

A gate stands between a head's context and the matrix that mixes the heads: at 1 the model is as it
is, at 0 the head adds nothing.

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
    """Switch heads off in all passes that are made meanwhile.

    A predictor made with `engine="torch"` runs the model's own encoder, and so without these heads;
    ONNX Runtime has a graph of its own, which nothing here changes.

    Examples:
        classifier = Classifier.load("sentiment/", engine="torch")
        with ablate(classifier.loaded.model, [(5, 3), (5, 4)]):
            without = classifier("a gripping film")

    Args:
        model: any of our models.
        heads: layer and head of each, both from 1.
    """
    names = check_heads(heads, model.config)
    gates = torch.ones(model.config.num_hidden_layers, model.config.num_attention_heads)
    for name in names:
        gates[name.layer - 1, name.head - 1] = 0.0
    with gate_heads(model.encoder, gates):
        yield


@contextmanager
def gate_heads(encoder: BertEncoder, gates: Float[Tensor, "layers heads"]) -> Iterator[None]:
    """Multiply what each head gathers by its gate, in all passes that are made meanwhile.

    Args:
        encoder: of any model.
        gates: factors; they may have gradients.
    """
    with ExitStack() as hooks:
        for attention, gate in zip(list_attention(encoder), gates, strict=True):
            hooks.callback(_gate(attention, gate).remove)
        yield


def _gate(attention: SelfAttention, gate: Float[Tensor, " heads"]) -> Any:
    """A hook before the matrix that mixes a layer's heads."""

    def scale(_: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        (rows,) = inputs
        heads = rows.view(len(rows), attention.num_heads, -1)
        return ((heads * gate.to(rows)[:, None]).flatten(start_dim=1),)

    return attention.output.register_forward_pre_hook(scale)
