"""Ablate attention heads, or scale their output, to measure their importance.

A gate multiplies a head's context before the output projection: 1 leaves the model unchanged, 0
removes the head's contribution.

Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 2.3.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.base.errors import SettingsError
from bertkit.inference.engines.torch_engine import HasEncoder
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder
from bertkit.nn.attention import SelfAttention

FORM = re.compile(r"(\d{1,4})\.(\d{1,4})", re.ASCII)


class HeadName(NamedTuple):
    """An attention head, named by layer and number.

    Attributes:
        layer: from 1; the input of layer 1 is the embeddings.
        head: from 1.
    """

    layer: int
    head: int

    def __str__(self) -> str:
        """Return the name, such as 5.3."""
        return f"{self.layer}.{self.head}"


def parse_heads(text: str, config: BertConfig) -> list[HeadName]:
    """Parse names such as "5.3,5.4"; duplicates are removed."""
    names = []
    for word in filter(None, (word.strip() for word in text.split(","))):
        match = FORM.fullmatch(word)
        if match is None:
            raise SettingsError(
                f"expected heads such as 5.3,5.4 (layer 5, heads 3 and 4), got {word!r:.40}"
            )
        names.append(HeadName(int(match[1]), int(match[2])))
    if not names:
        raise SettingsError("name at least one head, such as 5.3 (layer 5, head 3)")
    return check_heads(names, config)


def check_heads(names: Iterable[tuple[int, int]], config: BertConfig) -> list[HeadName]:
    """Check that the model has all these heads and return them without duplicates."""
    checked = [HeadName(layer, head) for layer, head in dict.fromkeys(names)]
    num_layers, num_heads = config.num_hidden_layers, config.num_attention_heads
    for name in checked:
        if not (1 <= name.layer <= num_layers and 1 <= name.head <= num_heads):
            raise SettingsError(
                f"there is no head {name}: this model has layers 1 to {num_layers}, each with heads"
                f" 1 to {num_heads}"
            )
    return checked


def count_layer(layer: int | None, config: BertConfig) -> int | None:
    """Return the number, from 1, of a layer that may be counted from the last, -1."""
    num_layers = config.num_hidden_layers
    if layer is not None and -num_layers <= layer < 0:
        return num_layers + 1 + layer
    return layer


@contextmanager
def ablate(model: HasEncoder, heads: Iterable[tuple[int, int]]) -> Iterator[None]:
    """Switch heads off in all forward passes inside the `with` block.

    A predictor loaded with `engine="torch", precision="fp32"` runs the model's own encoder, so the
    heads are off there too. In bf16 it runs a copy, and OpenVINO a graph of its own: there they
    stay on.

    Examples:
        >>> classifier = Classifier.load("sentiment/", engine="torch", precision="fp32")
        >>> with ablate(classifier.engine.model, [(5, 3), (5, 4)]):
        ...     without = classifier("a gripping film")

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
    """Multiply each head's context by its gate inside the `with` block.

    The gates may require gradients.
    """

    def scale(gate: Tensor, _: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        (rows,) = inputs
        heads = rows.view(len(rows), len(gate), -1)
        return ((heads * gate.to(rows)[:, None]).flatten(start_dim=1),)

    layers = (module for module in encoder.modules() if isinstance(module, SelfAttention))
    with ExitStack() as hooks:
        for attention, gate in zip(layers, gates, strict=True):
            handle = attention.output.register_forward_pre_hook(partial(scale, gate))
            hooks.callback(handle.remove)
        yield


def importance_by_ablation(
    model: HasEncoder, measure: Callable[[], float]
) -> Float[Tensor, "layers heads"]:
    """Return how a measure changes when each head alone is ablated: ablated minus whole model.

    Args:
        model: any bertkit model; `measure` must run this model's own encoder.
        measure: returns, for example, a loss or the probability of an answer; called once for the
            whole model and once for each head.
    """
    whole = measure()
    changes = torch.zeros(model.config.num_hidden_layers, model.config.num_attention_heads)
    for layer, head in product(*map(range, changes.shape)):
        with ablate(model, [(layer + 1, head + 1)]):
            changes[layer, head] = measure() - whole
    return changes


def importance_by_gradient(
    model: HasEncoder, losses: Iterable[Callable[[], Float[Tensor, ""]]]
) -> Float[Tensor, "layers heads"]:
    """Return the mean absolute gradient of the loss at each head's gate: one pass per example.

    Args:
        model: any bertkit model, in evaluation mode.
        losses: each computes the loss of one example, with the model's own encoder.
    """
    sizes = (model.config.num_hidden_layers, model.config.num_attention_heads)
    total, count = torch.zeros(sizes), 0
    for loss in losses:
        gates = torch.ones(sizes, requires_grad=True)
        with torch.enable_grad(), gate_heads(model.encoder, gates):
            (gradient,) = torch.autograd.grad(loss(), gates)
        total, count = total + gradient.abs(), count + 1
    if count == 0:
        raise ValueError("importance by gradient needs at least one example")
    return total / count
