"""The steps of a graph computed at once, in NumPy: for heads, which are small."""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bertkit.inference.activations import gelu, gelu_tanh, mish, relu, silu
from bertkit.inference.graphs.graph import WORDS, Graph

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
        """Return the product of values with the matrix of a linear layer, plus its bias."""
        weight, bias = self.find_linear(name)
        product: Array = values @ weight.T + bias
        return product

    def norm(self, name: str, values: Array) -> Array:
        """Return the values of a layer norm."""
        centered = values - values.mean(axis=-1, keepdims=True)
        variance = np.square(centered).mean(axis=-1, keepdims=True)
        scaled = centered / np.sqrt(variance + self.config.layer_norm_eps)
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        normed: Array = scaled * weight + bias
        return normed

    def add(self, values: Array, others: Array) -> Array:
        """Return the sum."""
        return values + others

    def activate(self, name: str, values: Array) -> Array:
        """Return the values of an activation function."""
        return ACTIVATIONS[name](values)

    def attend(self, query: Array, key: Array, value: Array) -> Array:
        """Return the concatenated heads of attention within one sequence, `[tokens, hidden]`."""
        heads = (len(query), self.config.num_attention_heads, -1)
        query, key, value = (part.reshape(heads).swapaxes(0, 1) for part in (query, key, value))
        scores = query @ key.swapaxes(1, 2) / math.sqrt(query.shape[-1])
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        context: Array = (shares @ value).swapaxes(0, 1).reshape(len(query[0]), -1)
        return context

    def score_words(self, features: Array) -> Array:
        """Return the scores of all words for features of tokens."""
        scores: Array = features @ self.weights[WORDS].T + self.weights["masked_lm.bias"]
        return scores
