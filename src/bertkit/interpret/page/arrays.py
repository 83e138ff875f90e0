"""Attention tensors quantized to bytes for the page."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int8, UInt8
from torch import Tensor

from bertkit.interpret.capture import AttentionHeads

INT8_STEPS = 127


def pack_weights(layers: Sequence[AttentionHeads]) -> dict[str, bytes]:
    """Quantize the attention weights of each layer, keyed by the name that scripts use."""
    return {
        f"weights-{number}": _weight_bytes(layer.weights).numpy().tobytes()
        for number, layer in enumerate(layers, 1)
    }


def pack_vectors(
    layers: Sequence[AttentionHeads],
) -> tuple[dict[str, bytes], list[list[list[float]]]]:
    """Quantize query, key and value of each layer to int8.

    Returns:
        The int8 bytes, keyed by the name that scripts use; and for each layer the scale of each
        head for query, for key and for value.
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
    """Quantize each weight w to the byte b = round(255 √w), which is read back as (b / 255)².

    The square root preserves weak attention: the smallest value above 0 is 1/65,025.
    """
    return weights.float().sqrt().mul(255).round().to("cpu", torch.uint8)


def _quantize(
    part: Float[Tensor, "heads length features"],
) -> tuple[Int8[Tensor, "heads length features"], list[float]]:
    """Quantize to int8 symmetrically for each head; return the values and each head's scale."""
    part = part.float().cpu()
    scales = part.abs().amax(dim=(1, 2)) / INT8_STEPS
    scales[scales == 0] = 1.0
    return (part / scales[:, None, None]).round().to(torch.int8), scales.tolist()
