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

if TYPE_CHECKING:
    from jaxtyping import Float

Value = TypeVar("Value")
Weights: TypeAlias = Mapping[str, npt.NDArray[np.floating[Any]]]  # by the names of our models

PARTS = ("query", "key", "value")  # of one matrix, in this order
JOINED = "query_key_value"
WORDS = "encoder.embeddings.word.weight"


class Graph(ABC, Generic[Value]):
    """Weights, and the steps that use them.

    Attributes:
        config: the sizes.
        weights: those of the model, by name; a graph neither copies nor changes them.
    """

    def __init__(self, config: BertConfig, weights: Weights) -> None:
        self.config, self.weights = config, weights

    @abstractmethod
    def linear(self, name: str, values: Value) -> Value:
        """Return the product of values with the matrix of a linear layer, plus its bias."""

    @abstractmethod
    def norm(self, name: str, values: Value) -> Value:
        """Return the values of a layer norm."""

    @abstractmethod
    def add(self, values: Value, others: Value) -> Value:
        """Return the sum."""

    @abstractmethod
    def activate(self, name: str, values: Value) -> Value:
        """Return the values of an activation function, one of `ACTIVATIONS` of configs."""

    @abstractmethod
    def attend(self, query: Value, key: Value, value: Value) -> Value:
        """Return the concatenated heads of attention, without its output layer."""

    def keep(self, values: Value) -> Value:
        """Return the tokens that the last block computes: all, unless a graph needs fewer."""
        return values

    def find_linear(
        self, name: str
    ) -> tuple[Float[np.ndarray, "out in"], Float[np.ndarray, " out"]]:
        """Return matrix and bias of a linear layer; each of `PARTS` is a view of their matrix."""
        parent, _, last = name.rpartition(".")
        if last not in PARTS:
            return self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        size, joined = self.config.hidden_size, f"{parent}.{JOINED}"
        start = PARTS.index(last) * size
        rows = slice(start, start + size)
        return self.weights[f"{joined}.weight"][rows], self.weights[f"{joined}.bias"][rows]
