"""A model as an ONNX graph of standard operators, with the padded batches other tools expect.

Inputs are `input_ids`, `attention_mask` and `token_type_ids`, `[batch, length]`.
The graph uses opset 17: newer ones have operators for GELU and attention, but fewer programs read
them, and ONNX Runtime fuses these nodes into its own fast operators, except for the attention.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from bertkit.checkpoints.onnx_file import SCALE, SENTENCE, TRANSPOSED
from bertkit.checkpoints.sentence_modules import Dense, Normalize, Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel
from bertkit.inference.graphs.bert import write_layers, write_pooler
from bertkit.inference.graphs.graph import WORDS, Graph, Weights
from bertkit.inference.graphs.quantization import quantize_rows
from bertkit.inference.onnx.graph import OnnxGraph
from bertkit.models.bert.config import BertConfig

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

OPSET = 17
INPUT_NAMES = ("input_ids", "attention_mask", "token_type_ids")
# Far below any score, and well within the range of float16, in case the file is converted to it.
MASKED_SCORE = -1e4
FLOAT = 1  # ONNX's number of the type

Activation: TypeAlias = Callable[[OnnxGraph, str], str]
GraphPrecision: TypeAlias = Literal["fp32", "int8"]


def operator(name: str) -> Activation:
    """Return the activation that is a single operator of ONNX."""
    return lambda graph, values: graph.node(name, values)


def write_gelu(graph: OnnxGraph, values: str) -> str:
    """Add GELU: 0.5 · x · (1 + erf(x / √2))."""
    erf = graph.node("Erf", graph.node("Div", values, graph.constant(math.sqrt(2.0))))
    doubled = graph.node("Mul", values, graph.node("Add", erf, graph.constant(1.0)))
    return graph.node("Mul", doubled, graph.constant(0.5))


def write_gelu_tanh(graph: OnnxGraph, values: str) -> str:
    """Add the tanh approximation of GELU."""
    cube = graph.node("Mul", values, graph.node("Mul", values, values))
    summed = graph.node("Add", values, graph.node("Mul", cube, graph.constant(0.044715)))
    scaled = graph.node("Mul", summed, graph.constant(math.sqrt(2.0 / math.pi)))
    share = graph.node("Add", graph.node("Tanh", scaled), graph.constant(1.0))
    return graph.node("Mul", graph.node("Mul", values, graph.constant(0.5)), share)


def write_silu(graph: OnnxGraph, values: str) -> str:
    """Add SiLU: x · sigmoid(x)."""
    return graph.node("Mul", values, graph.node("Sigmoid", values))


ACTIVATIONS: dict[str, Activation] = {
    "gelu": write_gelu,
    "gelu_new": write_gelu_tanh,
    "gelu_python": write_gelu,
    "gelu_pytorch_tanh": write_gelu_tanh,
    "mish": lambda graph, values: graph.node(  # x · tanh(softplus(x))
        "Mul", values, graph.node("Tanh", graph.node("Softplus", values))
    ),
    "relu": operator("Relu"),
    "silu": write_silu,
    "swish": write_silu,
    "tanh": operator("Tanh"),
}


class PaddedGraph(Graph[str]):
    """Writes an encoder and heads for padded batches; encoder states are `[batch, length, hidden]`.

    In int8, only the encoder's matrices are integers.
    """

    _mask = ""

    def __init__(
        self,
        onnx: OnnxGraph,
        config: BertConfig,
        weights: Weights,
        precision: GraphPrecision = "fp32",
    ) -> None:
        super().__init__(config, weights)
        self.onnx, self.precision = onnx, precision

    def write_encoder(self, inputs: tuple[str, str, str] = INPUT_NAMES) -> str:
        """Write the encoder; the inputs are ids, attention mask and segments, `[batch, length]`."""
        onnx, (input_ids, attention_mask, token_type_ids) = self.onnx, inputs
        present = onnx.node("Unsqueeze", attention_mask, onnx.constant([1, 2]))
        absent = onnx.node("Sub", onnx.constant(1.0), onnx.node("Cast", present, to=FLOAT))
        self._mask = onnx.node("Mul", absent, onnx.constant(MASKED_SCORE))
        word = onnx.node("Gather", self._stored(WORDS), input_ids)
        segments = self._stored("encoder.embeddings.token_type.weight")
        segment = onnx.node("Gather", segments, token_type_ids)
        length, zero = onnx.node("Shape", input_ids, start=1, end=2), onnx.constant([0])
        positions = self._stored("encoder.embeddings.position.weight")
        position = onnx.node("Slice", positions, zero, length, zero)
        embedded = onnx.node("Add", onnx.node("Add", word, segment), position)
        return write_layers(self, embedded, self.config.num_hidden_layers)[-1]

    def write_summaries(self, tokens: str) -> str:
        """Write the pooler for the states of tokens; return the name of C, `[batch, hidden]`."""
        return write_pooler(self, self.onnx.take(tokens, 0, axis=1))

    def linear(self, name: str, values: str) -> str:
        """Write the product of values with the matrix of a linear layer, plus its bias."""
        weight, bias = self.find_linear(name)
        if self.precision == "int8" and name.startswith("encoder."):
            return multiply_int8(self.onnx, name, values, weight, bias)
        turned = self.onnx.weight(f"{name}.weight{TRANSPOSED}", weight.T)
        product = self.onnx.node("MatMul", values, turned)
        return self.onnx.node("Add", product, self.onnx.weight(f"{name}.bias", bias))

    def norm(self, name: str, values: str) -> str:
        """Write a layer norm."""
        weights = (self._stored(f"{name}.weight"), self._stored(f"{name}.bias"))
        epsilon = self.config.layer_norm_eps
        return self.onnx.node("LayerNormalization", values, *weights, axis=-1, epsilon=epsilon)

    def add(self, values: str, others: str) -> str:
        """Write the sum."""
        return self.onnx.node("Add", values, others)

    def activate(self, name: str, values: str) -> str:
        """Write an activation function."""
        return ACTIVATIONS[name](self.onnx, values)

    def attend(self, query: str, key: str, value: str) -> str:
        """Write attention without its output layer."""
        onnx, hidden_size = self.onnx, self.config.hidden_size
        num_heads = self.config.num_attention_heads
        num_features = hidden_size // num_heads
        split = onnx.constant([0, 0, num_heads, num_features])
        parts, orders = (query, key, value), ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        query, key, value = (
            onnx.node("Transpose", onnx.node("Reshape", part, split), perm=order)
            for part, order in zip(parts, orders, strict=True)
        )
        product, root = onnx.node("MatMul", query, key), onnx.constant(math.sqrt(num_features))
        scores = onnx.node("Add", onnx.node("Div", product, root), self._mask)
        shares = onnx.node("Softmax", scores, axis=3)
        context = onnx.node("Transpose", onnx.node("MatMul", shares, value), perm=[0, 2, 1, 3])
        return onnx.node("Reshape", context, onnx.constant([0, 0, hidden_size]))

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
    graph: OnnxGraph,
    name: str,
    values: str,
    weight: Float[np.ndarray, "out in"],
    bias: Float[np.ndarray, " out"],
) -> str:
    """Write the product of values with an int8 matrix, plus a bias; values are quantized once."""
    integers, scales = quantize_rows(weight)
    matrix = graph.weight(f"{name}.weight{TRANSPOSED}", integers.T)
    scale = graph.weight(f"{name}.weight{SCALE}", scales)
    inputs, input_scale, input_zero = graph.quantize(values)
    sums = graph.node("Cast", graph.node("MatMulInteger", inputs, matrix, input_zero), to=FLOAT)
    product = graph.node("Mul", sums, graph.node("Mul", input_scale, scale))
    return graph.node("Add", product, graph.weight(f"{name}.bias", bias))


LOWEST = -1e9  # below any feature; replaces padding before the maximum
LEAST_LENGTH = 1e-12  # least divisor, for vectors of zeros, as in torch's normalize


def write_sentence(graph: OnnxGraph, model: SentenceModel, tokens: str) -> str:
    """Write all modules of a model; return the name of the embeddings, `[batch, features]`."""
    vectors = ""
    for number, module in enumerate(model.modules, start=1):
        match module:
            case Pooling():
                vectors = write_pooling(graph, module.modes, tokens)
            case Dense():
                name, bias = f"{SENTENCE}{number}", module.bias
                inputs = [vectors, graph.weight(f"{name}.weight", module.weight.read_float32())]
                if bias is not None:
                    inputs.append(graph.weight(f"{name}.bias", bias.read_float32()))
                product = graph.node("Gemm", *inputs, transB=1)
                vectors = DENSE_NODES[module.activation](graph, product)
            case Normalize():
                norm = graph.node("ReduceL2", vectors, axes=[1], keepdims=1)
                norm = graph.node("Max", norm, graph.constant(LEAST_LENGTH))
                vectors = graph.node("Div", vectors, norm)
    if model.truncate_dimension is not None:
        bounds = (graph.constant([value]) for value in (0, model.truncate_dimension, 1))
        vectors = graph.node("Slice", vectors, *bounds)
    return graph.node("Identity", vectors, output="sentence_embedding")


def write_pooling(graph: OnnxGraph, modes: Sequence[str], tokens: str) -> str:
    """Write the pooling of tokens by each of some modes, concatenated; return its name."""
    mask = graph.node("Cast", "attention_mask", to=1)
    mask = graph.node("Unsqueeze", mask, graph.constant([2]))
    vectors = [POOLING_NODES[mode](graph, tokens, mask) for mode in modes]
    return vectors[0] if len(vectors) == 1 else graph.node("Concat", *vectors, axis=1)


def _write_max(graph: OnnxGraph, tokens: str, mask: str) -> str:
    is_token = graph.node("Cast", mask, to=9)
    shown = graph.node("Where", is_token, tokens, graph.constant(LOWEST))
    return graph.node("ReduceMax", shown, axes=[1], keepdims=0)


def _write_weighted_mean(graph: OnnxGraph, tokens: str, mask: str) -> str:
    weights = graph.node("Mul", _number(graph, mask), mask)
    return graph.node("Div", _sum(graph, tokens, weights), _count(graph, weights))


def _write_last(graph: OnnxGraph, tokens: str, mask: str) -> str:
    length = graph.node("ReduceSum", mask, graph.constant([1]), keepdims=1)
    is_last = graph.node("Equal", _number(graph, mask), length)
    return _sum(graph, tokens, graph.node("Mul", graph.node("Cast", is_last, to=1), mask))


def _sum(graph: OnnxGraph, tokens: str, weights: str) -> str:
    weighted = graph.node("Mul", tokens, weights)
    return graph.node("ReduceSum", weighted, graph.constant([1]), keepdims=0)


def _count(graph: OnnxGraph, weights: str) -> str:
    return graph.node("ReduceSum", weights, graph.constant([1]), keepdims=0)


def _number(graph: OnnxGraph, mask: str) -> str:
    """Add the position of each token in its text, from 1."""
    return graph.node("CumSum", mask, graph.constant([1]))


# The values of `bertkit.checkpoints.sentence_modules.POOLING_FLAGS`.
POOLING_NODES: dict[str, Callable[[OnnxGraph, str, str], str]] = {
    "cls": lambda graph, tokens, mask: graph.take(tokens, 0, axis=1),
    "max": _write_max,
    "mean": lambda graph, tokens, mask: graph.node(
        "Div", _sum(graph, tokens, mask), _count(graph, mask)
    ),
    "mean_sqrt_len_tokens": lambda graph, tokens, mask: graph.node(
        "Div", _sum(graph, tokens, mask), graph.node("Sqrt", _count(graph, mask))
    ),
    "weightedmean": _write_weighted_mean,
    "lasttoken": _write_last,
}


# The keys of `bertkit.checkpoints.sentence_modules.ACTIVATIONS`.
DENSE_NODES: dict[str, Activation] = {
    "identity": lambda graph, vectors: vectors,
    "tanh": operator("Tanh"),
    "relu": operator("Relu"),
    "gelu": write_gelu,
    "sigmoid": operator("Sigmoid"),
    "silu": write_silu,
}
