"""The encoder as an ONNX graph of standard operators, with the padded batches other tools expect.

Inputs are `input_ids`, `attention_mask` and `token_type_ids`, `[batch, length]`.
The graph uses opset 17: newer ones have operators for GELU and attention, but fewer programs read
them, and ONNX Runtime fuses these nodes into its own fast operators, except for the attention.
"""

import math
from collections.abc import Callable, Iterable, Sequence

from torch import Tensor, nn

from bertkit.checkpoints.onnx_file import SENTENCE, TRANSPOSED
from bertkit.checkpoints.sentence_modules import Dense, Normalize, Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel
from bertkit.checkpoints.torch_tensors import read_tensor
from bertkit.inference.onnx.graph import (
    Activation,
    EncoderWriter,
    OnnxGraph,
    operator,
    write_gelu,
    write_silu,
)
from bertkit.models.bert.encoder import BertEncoder, Pooler
from bertkit.nn.attention import SelfAttention

OPSET = 17
INPUT_NAMES = ("input_ids", "attention_mask", "token_type_ids")
# Far below any score, and well within the range of float16, in case the file is converted to it.
MASKED_SCORE = -1e4


class PaddedWriter(EncoderWriter):
    """Writes an encoder and heads for padded batches; encoder states are `[batch, length, hidden]`.

    In int8, only the encoder's matrices are integers.
    """

    _mask = ""

    def write_encoder(
        self, encoder: BertEncoder, inputs: tuple[str, str, str] = INPUT_NAMES, output: str = ""
    ) -> str:
        """Write an encoder; the inputs are ids, attention mask and segments, `[batch, length]`."""
        graph, (input_ids, attention_mask, token_type_ids) = self.graph, inputs
        present = graph.node("Unsqueeze", attention_mask, graph.constant([1, 2]))
        absent = graph.node("Sub", graph.constant(1.0), graph.node("Cast", present, to=1))
        self._mask = graph.node("Mul", absent, graph.constant(MASKED_SCORE))
        ids = (input_ids, token_type_ids)
        return self.write_layers(encoder, ids, len(encoder.layers), output)[-1]

    def write_pooler(self, pooler: Pooler, tokens: str, output: str = "") -> str:
        """Write the pooler; return the name of its output, `[batch, hidden]`."""
        first = self.graph.take(tokens, 0, axis=1)
        return self.graph.node(
            "Tanh", self.write_head("pooler.dense", pooler.dense, first), output=output
        )

    def write_head(self, name: str, linear: nn.Linear, values: str, output: str = "") -> str:
        """Write a linear layer of a head, in float32."""
        product = self.write_product(name, values, linear.weight, linear.bias)
        return self.graph.node("Identity", product, output=output) if output else product

    def write_positions(self, positions: str, input_ids: str) -> str:
        """Write the choice of the position embedding of each column."""
        length = self.graph.node("Shape", input_ids, start=1, end=2)
        zero = self.graph.constant([0])
        return self.graph.node("Slice", positions, zero, length, zero)

    def write_attention(self, attention: SelfAttention, parts: Iterable[str]) -> str:
        """Write attention without its output layer."""
        graph, hidden_size = self.graph, attention.output.in_features
        num_features = hidden_size // attention.num_heads
        split = graph.constant([0, 0, attention.num_heads, num_features])
        query, key, value = (
            graph.node("Transpose", graph.node("Reshape", part, split), perm=order)
            for part, order in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        product, root = graph.node("MatMul", query, key), graph.constant(math.sqrt(num_features))
        scores = graph.node("Add", graph.node("Div", product, root), self._mask)
        shares = graph.node("Softmax", scores, axis=3)
        context = graph.node("Transpose", graph.node("MatMul", shares, value), perm=[0, 2, 1, 3])
        return graph.node("Reshape", context, graph.constant([0, 0, hidden_size]))

    def write_product(self, name: str, values: str, weight: Tensor, bias: Tensor) -> str:
        """Write the product of values with a float32 matrix, plus a bias."""
        turned = self.graph.weight(f"{name}.weight{TRANSPOSED}", weight.t())
        product = self.graph.node("MatMul", values, turned)
        return self.graph.node("Add", product, self.graph.weight(f"{name}.bias", bias))


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
                inputs = [vectors, graph.weight(f"{name}.weight", read_tensor(module.weight))]
                inputs += [] if bias is None else [graph.weight(f"{name}.bias", read_tensor(bias))]
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
