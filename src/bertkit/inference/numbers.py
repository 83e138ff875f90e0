"""Functions of scores, in NumPy: the highest ones, and the logarithm of a softmax's denominator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float32, Int64


def find_highest(
    scores: Float32[np.ndarray, "rows columns"], number: int
) -> Int64[np.ndarray, "rows chosen"]:
    """Return the columns of the highest scores of each row, the highest first, ties in order."""
    number = min(number, scores.shape[1])
    if number < scores.shape[1]:
        threshold = -np.partition(-scores, number - 1, axis=1)[:, number - 1 : number]
        is_high = scores >= threshold  # ties may be more than are wanted
        rows = zip(scores, is_high, strict=True)
        return np.stack([_order(row, np.flatnonzero(own))[:number] for row, own in rows])
    return np.argsort(-scores, axis=1, kind="stable")


def _order(
    row: Float32[np.ndarray, " columns"], columns: Int64[np.ndarray, " some"]
) -> Int64[np.ndarray, " some"]:
    return columns[np.argsort(-row[columns], kind="stable")]


def log_sum_exp(scores: Float32[np.ndarray, "rows columns"]) -> Float32[np.ndarray, " rows"]:
    """Return the logarithm of the sum of the exponentials of each row."""
    highest = scores.max(axis=1)
    sums: Float32[np.ndarray, " rows"] = np.exp(scores - highest[:, None]).sum(axis=1)
    logs: Float32[np.ndarray, " rows"] = np.log(sums) + highest
    return logs
