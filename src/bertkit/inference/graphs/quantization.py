"""Quantization of weight matrices to int8, for the engine and for exported models alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int8

LARGEST = 127  # -128 isn't used, so that a weight and its negative are equally exact


def quantize_rows(
    weight: Float[np.ndarray, "out in"],
) -> tuple[Int8[np.ndarray, "out in"], Float[np.ndarray, " out"]]:
    """Return a matrix rounded to integers from -127 to 127, and the scale of each of its rows."""
    tiny = np.finfo(np.float32).tiny
    scales = np.maximum(np.abs(weight).max(axis=1), tiny) / LARGEST
    return np.rint(weight / scales[:, None]).astype(np.int8), scales
