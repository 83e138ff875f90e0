"""A model as an ONNX graph of standard operators, with the padded batches other tools expect.

Inputs are `input_ids`, `attention_mask` and, of models with several segments, `token_type_ids`,
`[batch, length]`.
The graph uses opset 17: newer ones have operators for GELU and attention, but fewer programs read
them, and ONNX Runtime fuses these nodes into its own fast operators, except for the attention.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from bertkit.checkpoints.onnx_file import SCALE, TRANSPOSED
from bertkit.inference.graphs.bert import write_layers, write_pooler
from bertkit.inference.graphs.graph import JOINED, RELATIVE_BIAS, WORDS, Graph, Weights
from bertkit.inference.graphs.quantization import quantize_rows
from bertkit.inference.onnx.activations import ACTIVATIONS
from bertkit.inference.onnx.graph import OnnxGraph
from bertkit.inference.onnx.positions import FLOAT, Positions
from bertkit.inference.onnx.sentences import write_pooling
from bertkit.models.bert.config import BertConfig
from bertkit.nn.parts import BERT_HEAD

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

OPSET = 17
INPUT_NAMES = ("input_ids", "attention_mask", "token_type_ids")

GraphPrecision: TypeAlias = Literal["fp32", "int8"]


class PaddedGraph(Graph[str]):
    """Writes an encoder and heads for padded batches; encoder states are `[batch, length, hidden]`.

    In int8, only the encoder's matrices are integers.
    """

    _positions: Positions

    def __init__(
        self,
        onnx: OnnxGraph,
        config: BertConfig,
        weights: Weights,
        architecture: str,
        precision: GraphPrecision = "fp32",
    ) -> None:
        super().__init__(config, weights, config.find_head(architecture) or BERT_HEAD)
        self.onnx, self.precision = onnx, precision

    def write_encoder(self, inputs: Sequence[str]) -> str:
        """Write the encoder.

        Args:
            inputs: ids, attention mask, and segments if the model has several, `[batch, length]`.
        """
        onnx, (input_ids, attention_mask, *segments) = self.onnx, inputs
        length = onnx.node("Shape", input_ids, start=1, end=2)
        biases = self._stored(RELATIVE_BIAS) if self.parts.num_buckets else ""
        num_buckets = self.parts.num_buckets
        self._positions = Positions(onnx, attention_mask, length, biases, num_buckets)
        embedded = onnx.node("Gather", self._stored(WORDS), input_ids)
        if self.config.type_vocab_size:
            table = self._stored("encoder.embeddings.token_type.weight")
            chosen = segments[0] if segments else onnx.constant([0])
            embedded = onnx.node("Add", embedded, onnx.node("Gather", table, chosen))
        if self.parts.has_positions:
            positions = self._write_positions(attention_mask, length)
            embedded = onnx.node("Add", embedded, positions)
        return write_layers(self, embedded, self.config.num_hidden_layers)[-1]

    def _write_positions(self, attention_mask: str, length: str) -> str:
        """Write the embeddings of positions.

        They count columns; with an offset they count tokens, and padding has the row before theirs.
        """
        onnx, offset = self.onnx, self.parts.position_offset
        table, zero = self._stored("encoder.embeddings.position.weight"), onnx.constant([0])
        if not offset:
            return onnx.node("Slice", table, zero, length, zero)
        number = onnx.node("CumSum", attention_mask, onnx.constant([1]))
        places = onnx.node("Mul", number, attention_mask)
        return onnx.node("Gather", table, onnx.node("Add", places, onnx.constant([offset - 1])))

    def write_summaries(self, tokens: str) -> str:
        """Write the pooler for the states of tokens; return the name of C, `[batch, hidden]`."""
        if self.head.pooling == "mean":
            return write_pooler(self, write_pooling(self.onnx, ("mean",), tokens))
        return write_pooler(self, self.onnx.take(tokens, 0, axis=1))

    def linear(self, name: str, values: str) -> str:
        """Write the product of values with the matrix of a linear layer, plus a bias if any."""
        weight, bias = self.find_linear(name)
        if self.precision == "int8" and name.startswith("encoder."):
            product = multiply_int8(self.onnx, name, values, weight)
        else:
            turned = self.onnx.weight(f"{name}.weight{TRANSPOSED}", weight.T)
            product = self.onnx.node("MatMul", values, turned)
        if bias is None:
            return product
        return self.onnx.node("Add", product, self.onnx.weight(f"{name}.bias", bias))

    def linear_parts(self, name: str, values: str) -> list[str]:
        """Write the parts of a layer: one product, if files of the family have one matrix."""
        if len(self.config.names.table().their_names(f"{name}.weight")) > 1:
            return super().linear_parts(name, values)
        return self.onnx.split(self.linear(name, values), len(JOINED[name.rpartition(".")[2]]))

    def norm(self, name: str, values: str) -> str:
        """Write a layer norm."""
        bias = [self._stored(f"{name}.bias")] if f"{name}.bias" in self.weights else []
        weights = (self._stored(f"{name}.weight"), *bias)
        epsilon = self.config.layer_norm_eps
        return self.onnx.node("LayerNormalization", values, *weights, axis=-1, epsilon=epsilon)

    def add(self, values: str, others: str) -> str:
        """Write the sum."""
        return self.onnx.node("Add", values, others)

    def multiply(self, values: str, others: str) -> str:
        """Write the products of values at the same places."""
        return self.onnx.node("Mul", values, others)

    def activate(self, name: str, values: str) -> str:
        """Write an activation function."""
        return ACTIVATIONS[name](self.onnx, values)

    def attend(self, query: str, key: str, value: str, layer: int) -> str:
        """Write a layer's attention without its output layer."""
        onnx, num_features = self.onnx, self.config.hidden_size // self.config.num_attention_heads
        split = onnx.constant([0, 0, self.config.num_attention_heads, num_features])
        query, key, value = (onnx.node("Reshape", part, split) for part in (query, key, value))
        if (base := self.parts.find_rotary_base(layer)) is not None:
            query, key = (self._positions.turn(each, base, num_features) for each in (query, key))
        parts, orders = (query, key, value), ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        query, key, value = (
            onnx.node("Transpose", part, perm=order)
            for part, order in zip(parts, orders, strict=True)
        )
        product, root = onnx.node("MatMul", query, key), onnx.constant(math.sqrt(num_features))
        mask = self._positions.find_mask(self.parts.find_window(layer))
        scores = onnx.node("Add", onnx.node("Div", product, root), mask)
        shares = onnx.node("Softmax", scores, axis=3)
        context = onnx.node("Transpose", onnx.node("MatMul", shares, value), perm=[0, 2, 1, 3])
        return onnx.node("Reshape", context, onnx.constant([0, 0, self.config.hidden_size]))

    def score_words(self, features: str) -> str:
        """Write the scores of all words for features of tokens.

        The product reads the word embeddings where they are.
        """
        words = self.onnx.node("Transpose", self._stored(WORDS), perm=[1, 0])
        scores = self.onnx.node("MatMul", features, words)
        return self.onnx.node("Add", scores, self._stored("masked_lm.bias"))

    def _stored(self, name: str) -> str:
        return self.onnx.weight(name, self.weights[name])


def multiply_int8(
    graph: OnnxGraph, name: str, values: str, weight: Float[np.ndarray, "out in"]
) -> str:
    """Write the product of values with an int8 matrix; values are quantized once."""
    integers, scales = quantize_rows(weight)
    matrix = graph.weight(f"{name}.weight{TRANSPOSED}", integers.T)
    scale = graph.weight(f"{name}.weight{SCALE}", scales)
    inputs, input_scale, input_zero = graph.quantize(values)
    sums = graph.node("Cast", graph.node("MatMulInteger", inputs, matrix, input_zero), to=FLOAT)
    return graph.node("Mul", sums, graph.node("Mul", input_scale, scale))
