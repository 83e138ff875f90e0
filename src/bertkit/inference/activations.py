"""Activation functions in NumPy, in the precision of their values."""

import math

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]

LAST_POINT, POINTS_PER_UNIT = 6, 256  # erf(6) is 1 to 16 digits
POINTS = np.arange(LAST_POINT * POINTS_PER_UNIT + 1) / POINTS_PER_UNIT
ERF_AT_POINTS = np.array([math.erf(point) for point in POINTS])
SLOPES_AT_POINTS = 2.0 / math.sqrt(math.pi) * np.exp(-(POINTS**2))


def erf(values: Array) -> Array:
    """Return the error function, to about 1e-10.

    It is the Taylor polynomial of third degree around the nearest of `POINTS`.
    """
    kind = values.dtype
    sizes = np.fmin(np.abs(values), LAST_POINT)  # NaN has no place
    places = np.rint(sizes * POINTS_PER_UNIT).astype(np.intp)
    point = POINTS.astype(kind)[places]
    step = sizes - point
    curve = 1.0 - step * (point - step * (2.0 * point * point - 1.0) / 3.0)
    rise = SLOPES_AT_POINTS.astype(kind)[places] * step * curve
    found: Array = np.copysign(ERF_AT_POINTS.astype(kind)[places] + rise, values)
    return found


def gelu(values: Array) -> Array:
    """Return GELU: 0.5 · x · (1 + erf(x / √2))."""
    return 0.5 * values * (1.0 + erf(values / math.sqrt(2.0)))


def gelu_tanh(values: Array) -> Array:
    """Return the tanh approximation of GELU."""
    inner = math.sqrt(2.0 / math.pi) * (values + 0.044715 * values**3)
    return 0.5 * values * (1.0 + np.tanh(inner))


def sigmoid(values: Array) -> Array:
    """Return 1 / (1 + exp(-x)), without overflow."""
    found: Array = 0.5 * (1.0 + np.tanh(0.5 * values))
    return found


def silu(values: Array) -> Array:
    """Return SiLU: x · sigmoid(x)."""
    found: Array = values * sigmoid(values)
    return found


def mish(values: Array) -> Array:
    """Return Mish: x · tanh(softplus(x))."""
    found: Array = values * np.tanh(np.logaddexp(values, 0.0))
    return found


def relu(values: Array) -> Array:
    """Return the values, 0 in place of negative ones."""
    found: Array = np.maximum(values, 0.0)
    return found
