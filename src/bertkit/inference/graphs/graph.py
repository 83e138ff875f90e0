"""The steps in which `bert.py` describes encoder and heads.

A graph of NumPy computes each step at once, one of OpenVINO or ONNX writes a node for it. A value
is what a step returns: an array, a node or a node's name. How sequences lie in it, packed or
padded, is the graph's own affair: only attention looks at it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from bertkit.models.bert.config import BertConfig
from bertkit.nn.parts import BERT_HEAD, HeadParts
from bertkit.nn.positions import find_buckets

if TYPE_CHECKING:
    from jaxtyping import Float

Value = TypeVar("Value")
Weights: TypeAlias = Mapping[str, npt.NDArray[np.floating[Any]]]  # by the names of our models

# Layers whose outputs are computed in parts, each from a view of their matrix, in this order.
JOINED = {"query_key_value": ("query", "key", "value"), "up": ("inner", "gate")}
WORDS = "encoder.embeddings.word.weight"
MASKED_SCORE = np.float32(-1e30)  # below any score
RELATIVE_BIAS = "encoder.relative_bias.weight"


class Graph(ABC, Generic[Value]):
    """Weights, and the steps that use them.

    Attributes:
        config: the sizes, and what the encoder is made of.
        weights: those of the model, by name; a graph neither copies nor changes them.
        head: what the model's head computes before its last layer.
    """

    def __init__(self, config: BertConfig, weights: Weights, head: HeadParts = BERT_HEAD) -> None:
        self.config, self.weights, self.head = config, weights, head
        self.parts = config.parts

    @abstractmethod
    def linear(self, name: str, values: Value) -> Value:
        """Return the product of values with the matrix of a linear layer, plus a bias if any."""

    def linear_parts(self, name: str, values: Value) -> list[Value]:
        """Return the outputs of a layer of `JOINED` in parts."""
        parent, _, last = name.rpartition(".")
        return [self.linear(f"{parent}.{part}", values) for part in JOINED[last]]

    @abstractmethod
    def norm(self, name: str, values: Value) -> Value:
        """Return the values of a layer norm."""

    @abstractmethod
    def add(self, values: Value, others: Value) -> Value:
        """Return the sum."""

    @abstractmethod
    def multiply(self, values: Value, others: Value) -> Value:
        """Return the products of values at the same places."""

    @abstractmethod
    def activate(self, name: str, values: Value) -> Value:
        """Return the values of an activation function, one of `ACTIVATIONS` of configs."""

    @abstractmethod
    def attend(self, query: Value, key: Value, value: Value, layer: int) -> Value:
        """Return the concatenated heads of a layer's attention, without its output layer."""

    def keep(self, values: Value) -> Value:
        """Return the tokens that the last block computes: all, unless a graph needs fewer."""
        return values

    def find_linear(
        self, name: str
    ) -> tuple[Float[np.ndarray, "out in"], Float[np.ndarray, " out"] | None]:
        """Return matrix and bias of a linear layer, or of a part of one of `JOINED`."""
        parent, _, last = name.rpartition(".")
        for joined, parts in JOINED.items():
            if last in parts:
                whole = f"{parent}.{joined}"
                size = len(self.weights[f"{whole}.weight"]) // len(parts)
                rows = slice(parts.index(last) * size, (parts.index(last) + 1) * size)
                bias = self.weights.get(f"{whole}.bias")
                return self.weights[f"{whole}.weight"][rows], None if bias is None else bias[rows]
        return self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")

    def find_distance_biases(self) -> Float[np.ndarray, "distances heads"]:
        """Return what is added to scores for each distance that `find_buckets` distinguishes."""
        biases: Float[np.ndarray, "distances heads"]
        biases = self.weights[RELATIVE_BIAS][find_buckets(self.parts.num_buckets)]
        return biases
