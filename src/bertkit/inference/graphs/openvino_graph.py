"""The encoder as a graph of OpenVINO, for packed batches (no padding).

Linear layers, norms and activations process the concatenated tokens of all sequences,
`[tokens, hidden]`. Only attention arranges them in rows as long as the longest sequence; a graph
for one sequence at a time needs no rows.

Source: docs.openvino.ai, "Available Operation Sets", opset 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import openvino.opset13 as ops
from openvino import Model

from bertkit.inference.graphs.bert import write_layers
from bertkit.inference.graphs.graph import MASKED_SCORE, Graph, Weights
from bertkit.inference.graphs.quantization import quantize_rows
from bertkit.models.bert.config import BertConfig
from bertkit.nn.positions import MAX_DISTANCE

if TYPE_CHECKING:
    from jaxtyping import Float

# Products of integers with fewer inputs, or one output, are wrong in OpenVINO 2026.4.
LEAST_INT8_SIZE = 4

Node: TypeAlias = Any  # OpenVINO's own annotations name several classes for one thing

ACTIVATIONS: dict[str, Any] = {
    "gelu": lambda values: ops.gelu(values, "erf"),
    "gelu_new": lambda values: ops.gelu(values, "tanh"),
    "gelu_python": lambda values: ops.gelu(values, "erf"),
    "gelu_pytorch_tanh": lambda values: ops.gelu(values, "tanh"),
    "mish": ops.mish,
    "relu": ops.relu,
    "silu": ops.swish,
    "swish": ops.swish,
    "tanh": ops.tanh,
}


class OpenVinoGraph(Graph[Node]):
    """Writes an encoder; its inputs are `inputs`, in this order.

    The first, `[tokens, hidden]`, has the sum of each token's embeddings, and the second,
    `[sequences, 1, 1, longest]`, is added to the scores of attention. With `is_mixed` there are
    `rows`, `[sequences, longest]`, the index of the token at each position, and `places`,
    `[tokens]`, the position of each token in the flattened rows. With `is_summarizing` there is
    `summaries`, `[sequences]`, the index of each [CLS], and the highest block computes only those.
    The last ones are `rotary_waves`, `[2, longest, features]`, of each base.

    The memory of the weights is used and must stay allocated, and writable, as OpenVINO asks.
    """

    def __init__(
        self,
        config: BertConfig,
        weights: Weights,
        *,
        is_mixed: bool,
        is_int8: bool = False,
        is_summarizing: bool = False,
    ) -> None:
        super().__init__(config, weights)
        self._is_int8 = is_int8
        self._rows = self._places = self._summaries = None
        # One sequence has a mask too: without, attention to 16 tokens or more is wrong in 2026.4.
        self._mask = ops.parameter([-1, 1, 1, -1], np.float32)
        self._masks: dict[int | None, Node] = {}
        self._num_features = config.hidden_size // config.num_attention_heads
        embedding_size = self.parts.embedding_size or config.hidden_size
        self.inputs = [ops.parameter([-1, embedding_size], np.float32), self._mask]
        if is_mixed:
            self._rows = ops.parameter([-1, -1], np.int32)
            self._places = ops.parameter([-1], np.int32)
            self.inputs += [self._rows, self._places]
        if is_summarizing:
            self._summaries = ops.parameter([-1], np.int32)
            self.inputs.append(self._summaries)
        # Not computed here, where bf16 would round the angles.
        self._waves = {
            base: ops.parameter([2, -1, self._num_features], np.float32)
            for base in dict.fromkeys(self.parts.rotary_bases)
        }
        self.inputs += self._waves.values()

    def write(self, layers: Sequence[int]) -> Model:
        """Write the nodes up to the highest layer; each of the layers is an output."""
        states = write_layers(self, self.inputs[0], max(layers))
        return Model([states[layer] for layer in layers], self.inputs, "bert")

    def linear(self, name: str, values: Node) -> Node:
        """Write the product of values with the matrix of a linear layer, plus its bias."""
        weight, bias = self.find_linear(name)
        is_int8 = self._is_int8 and min(weight.shape) >= LEAST_INT8_SIZE
        matrix = _quantized(weight) if is_int8 else _shared(weight)
        product = ops.matmul(values, matrix, False, True)
        return product if bias is None else ops.add(product, _shared(bias))

    def norm(self, name: str, values: Node) -> Node:
        """Write a layer norm."""
        epsilon = self.config.layer_norm_eps
        scaled = ops.mvn(values, _indexes(-1), True, epsilon, "inside_sqrt")
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        scaled = ops.multiply(scaled, _shared(weight))
        return scaled if bias is None else ops.add(scaled, _shared(bias))

    def add(self, values: Node, others: Node) -> Node:
        """Write the sum."""
        return ops.add(values, others)

    def multiply(self, values: Node, others: Node) -> Node:
        """Write the products of values at the same places."""
        return ops.multiply(values, others)

    def activate(self, name: str, values: Node) -> Node:
        """Write an activation function."""
        return ACTIVATIONS[name](values)

    def attend(self, query: Node, key: Node, value: Node, layer: int) -> Node:
        """Write a layer's attention without its output layer."""
        query, key, value = (self._split(part) for part in (query, key, value))
        if (base := self.parts.find_rotary_base(layer)) is not None:
            query, key = self._turn(query, base), self._turn(key, base)
        mask = self._find_mask(self.parts.find_window(layer))
        context = ops.scaled_dot_product_attention(query, key, value, mask)
        joined = ops.transpose(context, _indexes(0, 2, 1, 3))
        flat = ops.reshape(joined, _indexes(-1, self.config.hidden_size), False)
        return flat if self._places is None else ops.gather(flat, self._places, _index(0))

    def _find_mask(self, window: int | None) -> Node:
        """Write, once for each window, what is added to scores."""
        if window not in self._masks:
            self._masks[window] = self._write_mask(window)
        return self._masks[window]

    def _write_mask(self, window: int | None) -> Node:
        mask = self._mask
        if window is None and not self.parts.num_buckets:
            return mask
        places = self._write_range()
        distances = ops.subtract(ops.unsqueeze(places, _index(0)), ops.unsqueeze(places, _index(1)))
        if self.parts.num_buckets:
            near = ops.add(ops.clamp(distances, -MAX_DISTANCE, MAX_DISTANCE), _index(MAX_DISTANCE))
            biases = _shared(np.ascontiguousarray(self.find_distance_biases().T))
            mask = ops.add(ops.gather(biases, near, _index(1)), mask)
        if window is not None:
            is_near = ops.less_equal(ops.abs(distances), _index(window))
            mask = ops.select(is_near, mask, ops.constant(MASKED_SCORE))
        return mask

    def _write_range(self) -> Node:
        """Write the positions of the longest sequence."""
        longest = ops.gather(ops.shape_of(self._mask), _index(3), _index(0))
        return ops.range(_index(0), longest, _index(1), output_type="i64")

    def _turn(self, heads: Node, base: float) -> Node:
        """Write rotary positions for `[sequences, heads, longest, features]`."""
        half = self._num_features // 2
        cosine, sine = (ops.gather(self._waves[base], _index(row), _index(0)) for row in (0, 1))
        first, second = ops.variadic_split(heads, _index(3), _indexes(half, half)).outputs()
        turned = ops.concat([ops.multiply(second, ops.constant(np.float32(-1.0))), first], 3)
        return ops.add(ops.multiply(heads, cosine), ops.multiply(turned, sine))

    def keep(self, values: Node) -> Node:
        """Write the choice of each sequence's [CLS], if the graph is for those."""
        return values if self._summaries is None else ops.gather(values, self._summaries, _index(0))

    def _split(self, values: Node) -> Node:
        """Write `[sequences, heads, longest, features]` for `[tokens, hidden]`."""
        num_heads, num_features = self.config.num_attention_heads, self._num_features
        if self._rows is None:
            split = ops.reshape(values, _indexes(1, -1, num_heads, num_features), False)
        else:
            rows = ops.gather(values, self._rows, _index(0))
            split = ops.reshape(rows, _indexes(0, 0, num_heads, num_features), True)
        return ops.transpose(split, _indexes(0, 2, 1, 3))


def _shared(values: Float[np.ndarray, ...]) -> Node:
    return ops.constant(values, shared_memory=True)


def _index(value: int) -> Node:
    return ops.constant(np.array(value, np.int64))


def _indexes(*values: int) -> Node:
    return ops.constant(np.array(values, np.int64))


def _quantized(weight: Float[np.ndarray, "out in"]) -> Node:
    integers, scales = quantize_rows(weight)
    return ops.multiply(
        ops.convert(ops.constant(integers), np.float32), ops.constant(scales[:, None])
    )
