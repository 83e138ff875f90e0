"""What a page keeps of attention, in as few bytes as the eye needs."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int8, UInt8
from torch import Tensor

from bertkit.interpret.capture import AttentionHeads

INT8_STEPS = 127


def pack_weights(layers: Sequence[AttentionHeads]) -> dict[str, bytes]:
    """The attention weights of each layer, under the name by which scripts find them."""
    return {
        f"weights-{number}": _weight_bytes(layer.weights).numpy().tobytes()
        for number, layer in enumerate(layers, 1)
    }


def pack_vectors(
    layers: Sequence[AttentionHeads],
) -> tuple[dict[str, bytes], list[list[list[float]]]]:
    """Query, key and value of each layer, and how long a step of their numbers is.

    Returns:
        The bytes of int8 under the name by which scripts find them, and for each layer the step of
        each head for query, for key and for value.
    """
    arrays, scales = {}, []
    for number, layer in enumerate(layers, 1):
        parts = [_quantize(part) for part in (layer.query, layer.key, layer.value)]
        arrays[f"vectors-{number}"] = b"".join(steps.numpy().tobytes() for steps, _ in parts)
        scales.append([part_scales for _, part_scales in parts])
    return arrays, scales


def _weight_bytes(
    weights: Float[Tensor, "heads length length"],
) -> UInt8[Tensor, "heads length length"]:
    """Each weight as the byte b for which (b / 255)² comes nearest in its root.

    So weak attention keeps its size: the least above 0 is 1/65,025.
    """
    return weights.float().sqrt().mul(255).round().to("cpu", torch.uint8)


def _quantize(
    part: Float[Tensor, "heads length features"],
) -> tuple[Int8[Tensor, "heads length features"], list[float]]:
    """Numbers in 127 steps up to the largest of each head, and how long its steps are."""
    part = part.float().cpu()
    scales = part.abs().amax(dim=(1, 2)) / INT8_STEPS
    scales[scales == 0] = 1.0
    return (part / scales[:, None, None]).round().to(torch.int8), scales.tolist()
