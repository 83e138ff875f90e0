"""The encoder as an ONNX graph of standard operators, with the padded batches other tools expect.

Inputs are `input_ids`, `attention_mask` and `token_type_ids`, `[batch, length]`.
The graph uses opset 17: newer ones have operators for GELU and attention, but fewer programs read
them, and ONNX Runtime fuses these nodes into its own fast operators, except for the attention.
"""

import math
from collections.abc import Callable, Sequence

from torch import Tensor, nn

from bertkit.checkpoints.onnx_file import SENTENCE, TRANSPOSED
from bertkit.checkpoints.sentence_modules import Dense, Normalize, Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel
from bertkit.inference.onnx.graph import (
    ACTIVATION_NODES,
    Activation,
    GraphPrecision,
    Multiply,
    OnnxGraph,
    add_norm,
    multiply_int8,
    operator,
    take_first,
    write_after_attention,
    write_gelu,
    write_int8_linear,
    write_silu,
)
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder, Pooler
from bertkit.nn.attention import SelfAttention
from bertkit.nn.block import EncoderBlock
from bertkit.nn.embeddings import Embeddings

OPSET = 17
INPUT_NAMES = ("input_ids", "attention_mask", "token_type_ids")
# Far below any score, and well within the range of float16, in case the file is converted to it.
MASKED_SCORE = -1e4


def write_encoder(
    graph: OnnxGraph,
    encoder: BertEncoder,
    config: BertConfig,
    precision: GraphPrecision = "fp32",
    inputs: tuple[str, str, str] = INPUT_NAMES,
    output: str = "",
) -> str:
    """Write the nodes of an encoder; return the name of its output, `[batch, length, hidden]`.

    The inputs are token ids, attention mask and segments, `[batch, length]`.
    """
    input_ids, attention_mask, token_type_ids = inputs
    present = graph.node("Unsqueeze", attention_mask, graph.constant([1, 2]))
    absent = graph.node("Sub", graph.constant(1.0), graph.node("Cast", present, to=1))
    mask = graph.node("Mul", absent, graph.constant(MASKED_SCORE))
    tokens = _write_embeddings(graph, encoder.embeddings, input_ids, token_type_ids)
    is_int8 = precision == "int8"
    multiply = multiply_int8 if is_int8 else _multiply
    parts = (write_int8_linear if is_int8 else write_linear, ACTIVATION_NODES[config.hidden_act])
    for number, layer in enumerate(encoder.layers):
        assert isinstance(layer, EncoderBlock)
        name, is_last = f"encoder.layers.{number}", number == len(encoder.layers) - 1
        attended = (tokens, mask)
        context = _write_attention(graph, f"{name}.attention", layer.attention, attended, multiply)
        named = output if is_last else ""
        tokens = write_after_attention(graph, name, layer, (tokens, context), parts, named)
    return tokens


def write_pooler(graph: OnnxGraph, pooler: Pooler, tokens: str, output: str = "") -> str:
    """Write the pooler; return the name of its output, `[batch, hidden]`."""
    dense = write_linear(graph, "pooler.dense", pooler.dense, take_first(graph, tokens))
    return graph.node("Tanh", dense, output=output)


def _write_embeddings(
    graph: OnnxGraph, embeddings: Embeddings, input_ids: str, token_type_ids: str
) -> str:
    name = "encoder.embeddings"
    words = graph.weight(f"{name}.word.weight", embeddings.word.weight)
    segments = graph.weight(f"{name}.token_type.weight", embeddings.token_type.weight)
    positions = graph.weight(f"{name}.position.weight", embeddings.position.weight)
    length = graph.node("Shape", input_ids, start=1, end=2)
    zero = graph.constant([0])
    place = graph.node("Slice", positions, zero, length, zero)
    word = graph.node("Gather", words, input_ids)
    segment = graph.node("Gather", segments, token_type_ids)
    summed = graph.node("Add", word, segment)
    return add_norm(graph, f"{name}.norm", embeddings.norm, summed, place)


def _write_attention(
    graph: OnnxGraph,
    name: str,
    attention: SelfAttention,
    inputs: tuple[str, str],
    multiply: Multiply,
) -> str:
    tokens, mask = inputs
    hidden_size = attention.output.in_features
    num_features = hidden_size // attention.num_heads
    split = graph.constant([0, 0, attention.num_heads, num_features])
    heads: list[str] = []
    weights = attention.query_key_value.weight.chunk(3)
    biases = attention.query_key_value.bias.chunk(3)
    for part, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
        biased = multiply(graph, f"{name}.{part}", tokens, weight, bias)
        order = [0, 2, 3, 1] if part == "key" else [0, 2, 1, 3]
        heads.append(graph.node("Transpose", graph.node("Reshape", biased, split), perm=order))
    query, key, value = heads
    scores = graph.node(
        "Div", graph.node("MatMul", query, key), graph.constant(math.sqrt(num_features))
    )
    shares = graph.node("Softmax", graph.node("Add", scores, mask), axis=3)
    context = graph.node("Transpose", graph.node("MatMul", shares, value), perm=[0, 2, 1, 3])
    return graph.node("Reshape", context, graph.constant([0, 0, hidden_size]))


def write_linear(
    graph: OnnxGraph, name: str, linear: nn.Linear, values: str, output: str = ""
) -> str:
    """Write a linear layer; return the name of its output."""
    product = _multiply(graph, name, values, linear.weight, linear.bias)
    return graph.node("Identity", product, output=output) if output else product


def _multiply(graph: OnnxGraph, name: str, values: str, weight: Tensor, bias: Tensor) -> str:
    turned = graph.weight(f"{name}.weight{TRANSPOSED}", weight.t())
    product = graph.node("MatMul", values, turned)
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
                vectors = _write_dense(graph, f"{SENTENCE}{number}", module, vectors)
            case Normalize():
                norm = graph.node("ReduceL2", vectors, axes=[1], keepdims=1)
                norm = graph.node("Max", norm, graph.constant(LEAST_LENGTH))
                vectors = graph.node("Div", vectors, norm)
    if model.truncate_dimension is not None:
        bounds = (graph.constant([value]) for value in (0, model.truncate_dimension, 1))
        vectors = graph.node("Slice", vectors, *bounds)
    return graph.node("Identity", vectors, output="sentence_embedding")


def count_features(model: SentenceModel) -> int:
    """Return the number of features of a sentence embedding."""
    size = 0
    for module in model.modules:
        match module:
            case Pooling():
                size = module.dimension * len(module.modes)
            case Dense():
                size = module.out_features
            case Normalize():
                pass
    return size if model.truncate_dimension is None else min(size, model.truncate_dimension)


def write_pooling(graph: OnnxGraph, modes: Sequence[str], tokens: str) -> str:
    """Write the pooling of tokens by each of some modes, concatenated; return its name."""
    mask = graph.node("Cast", "attention_mask", to=1)
    mask = graph.node("Unsqueeze", mask, graph.constant([2]))
    vectors = [POOLING_NODES[mode](graph, tokens, mask) for mode in modes]
    return vectors[0] if len(vectors) == 1 else graph.node("Concat", *vectors, axis=1)


def _write_dense(graph: OnnxGraph, name: str, dense: Dense, vectors: str) -> str:
    inputs = [vectors, graph.weight(f"{name}.weight", dense.weight.read())]
    if dense.bias is not None:
        inputs.append(graph.weight(f"{name}.bias", dense.bias.read()))
    return DENSE_NODES[dense.activation](graph, graph.node("Gemm", *inputs, transB=1))


def _write_max(graph: OnnxGraph, tokens: str, mask: str) -> str:
    is_token = graph.node("Cast", mask, to=9)
    shown = graph.node("Where", is_token, tokens, graph.constant(LOWEST))
    return graph.node("ReduceMax", shown, axes=[1], keepdims=0)


def _write_mean(graph: OnnxGraph, tokens: str, mask: str) -> str:
    return graph.node("Div", _sum(graph, tokens, mask), _count(graph, mask))


def _write_scaled_sum(graph: OnnxGraph, tokens: str, mask: str) -> str:
    root = graph.node("Sqrt", _count(graph, mask))
    return graph.node("Div", _sum(graph, tokens, mask), root)


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
    "cls": lambda graph, tokens, mask: take_first(graph, tokens),
    "max": _write_max,
    "mean": _write_mean,
    "mean_sqrt_len_tokens": _write_scaled_sum,
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
