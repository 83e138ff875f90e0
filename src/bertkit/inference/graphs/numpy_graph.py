"""The steps of a graph computed at once, in NumPy: for heads, which are small.

The encoder's steps are here to be read, and to be compared with those of other graphs.
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bertkit.inference.activations import gelu, gelu_tanh, mish, relu, silu
from bertkit.inference.graphs.graph import WORDS, Graph
from bertkit.nn.positions import MAX_DISTANCE, rotary_waves

Array: TypeAlias = npt.NDArray[np.floating[Any]]

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_python": gelu,
    "gelu_pytorch_tanh": gelu_tanh,
    "mish": mish,
    "relu": relu,
    "silu": silu,
    "swish": silu,
    "tanh": np.tanh,
}


class NumpyGraph(Graph[Array]):
    """Computes in the precision of the weights."""

    def linear(self, name: str, values: Array) -> Array:
        """Return the product of values with the matrix of a linear layer, plus a bias if any."""
        weight, bias = self.find_linear(name)
        product: Array = values @ weight.T
        return product if bias is None else product + bias

    def norm(self, name: str, values: Array) -> Array:
        """Return the values of a layer norm."""
        centered = values - values.mean(axis=-1, keepdims=True)
        variance = np.square(centered).mean(axis=-1, keepdims=True)
        scaled = centered / np.sqrt(variance + self.config.layer_norm_eps)
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        normed: Array = scaled * weight
        return normed if bias is None else normed + bias

    def add(self, values: Array, others: Array) -> Array:
        """Return the sum."""
        return values + others

    def multiply(self, values: Array, others: Array) -> Array:
        """Return the products of values at the same places."""
        return values * others

    def activate(self, name: str, values: Array) -> Array:
        """Return the values of an activation function."""
        return ACTIVATIONS[name](values)

    def attend(self, query: Array, key: Array, value: Array, layer: int) -> Array:
        """Return the concatenated heads of attention within one sequence, `[tokens, hidden]`."""
        heads = (len(query), self.config.num_attention_heads, -1)
        query, key, value = (part.reshape(heads).swapaxes(0, 1) for part in (query, key, value))
        if (base := self.parts.find_rotary_base(layer)) is not None:
            query, key = turn(query, base), turn(key, base)
        scores = query @ key.swapaxes(1, 2) / math.sqrt(query.shape[-1])
        scores += self.find_bias(len(query[0]), layer)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        context: Array = (shares @ value).swapaxes(0, 1).reshape(len(query[0]), -1)
        return context

    def find_bias(self, length: int, layer: int) -> Array:
        """Return what is added to a layer's scores, `[1 or heads, length, length]`."""
        places = np.arange(length)
        distances = places - places[:, None]
        bias = np.zeros((1, length, length), self.weights[WORDS].dtype)
        if self.parts.num_buckets:
            near = np.clip(distances, -MAX_DISTANCE, MAX_DISTANCE) + MAX_DISTANCE
            bias = self.find_distance_biases()[near].transpose(2, 0, 1)
        window = self.parts.find_window(layer)
        return bias if window is None else np.where(np.abs(distances) <= window, bias, -np.inf)

    def score_words(self, features: Array) -> Array:
        """Return the scores of all words for features of tokens."""
        scores: Array = features @ self.weights[WORDS].T + self.weights["masked_lm.bias"]
        return scores


def turn(heads: Array, base: float) -> Array:
    """Turn the pairs of features of `[heads, tokens, features]` by angles for their positions."""
    cosine, sine = rotary_waves(base, heads.shape[2], heads.shape[1]).astype(heads.dtype)
    first, second = np.split(heads, 2, axis=-1)
    turned: Array = heads * cosine + np.concatenate([-second, first], axis=-1) * sine
    return turned
