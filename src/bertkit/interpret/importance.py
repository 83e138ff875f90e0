"""The importance of each head, by ablation or by the gradient of its gate.

Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?", sections 3.2 and 4.1.
"""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.inference.engines.engine import HasEncoder
from bertkit.interpret.ablation import gate_heads


def importance_by_ablation(
    model: HasEncoder, measure: Callable[[], float]
) -> Float[Tensor, "layers heads"]:
    """Return how a measure changes when each head alone is ablated: ablated minus whole model.

    Args:
        model: any bertkit model; `measure` must run this model's own encoder.
        measure: returns, for example, a loss or the probability of an answer; called once for the
            whole model and once for each head.
    """
    gates = torch.ones(model.config.num_hidden_layers, model.config.num_attention_heads)
    whole, changes = measure(), torch.zeros_like(gates)
    for layer in range(gates.shape[0]):
        for head in range(gates.shape[1]):
            gates[layer, head] = 0.0
            with gate_heads(model.encoder, gates):
                changes[layer, head] = measure() - whole
            gates[layer, head] = 1.0
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
