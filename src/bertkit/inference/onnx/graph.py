"""A builder of ONNX graphs that keeps weights outside the graph.

The graph holds only name, type and shape of each weight, so it stays small for any model, and no
weight is copied before it is written to a file. torch's own exporter isn't used: an encoder needs
only a dozen kinds of nodes, and here each is written exactly as it should run.

Source: onnx.ai, "Open Neural Network Exchange Intermediate Representation", and its operators.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.base.errors import MissingExtraError
from bertkit.base.extras import describe_install
from bertkit.checkpoints.onnx_file import PRODUCER, SCALE, TRANSPOSED
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder
from bertkit.nn.attention import SelfAttention
from bertkit.nn.block import EncoderBlock

MICROSOFT = "com.microsoft"  # ONNX Runtime's own operators, all of version 1
ELEMENT_TYPES = {
    torch.float32: "FLOAT",
    torch.int64: "INT64",
    torch.int32: "INT32",
    torch.int8: "INT8",
    torch.bool: "BOOL",
}

Shape: TypeAlias = Sequence[int | str]


class OnnxGraph:
    """An ONNX graph: nodes in execution order, constants, and weights.

    `rename` gives a weight's name in the file for its name in bertkit's models.
    """

    def __init__(self, opset: int, rename: Callable[[str], str] = str) -> None:
        self._onnx = import_extra("onnx")
        self._rename = rename
        self._opsets = {"": opset}
        self._nodes: list[Any] = []
        self._num_nodes = 0
        self._constants: dict[str, Any] = {}
        self._quantized: dict[str, tuple[str, str, str]] = {}
        # by name in the file; views of the model's weights, maybe transposed
        self.weights: dict[str, Tensor] = {}

    def weight(self, name: str, tensor: Tensor) -> str:
        """Add a weight once and return its name; the tensor isn't copied, and may be a view."""
        name = self._rename(name)
        self.weights[name] = tensor.detach()
        return name

    def constant(self, value: float | list[int]) -> str:
        """Add a small constant and return its name: a number as float32, a list as int64."""
        name = f"constant_{value}".replace(" ", "")
        if name not in self._constants:
            kind, shape = ("INT64", [len(value)]) if isinstance(value, list) else ("FLOAT", [])
            values = value if isinstance(value, list) else [value]
            element_type = getattr(self._onnx.TensorProto, kind)
            self._constants[name] = self._onnx.helper.make_tensor(name, element_type, shape, values)
        return name

    def node(
        self, operator: str, *inputs: str, domain: str = "", output: str = "", **attributes: Any
    ) -> str:
        """Add a node with one output and return the output's name, by default generated."""
        name = output or f"{operator}_{self._num_nodes}"
        self._opsets.setdefault(domain, 1)
        self._add(operator, inputs, [name], domain=domain, **attributes)
        return name

    def norm(self, name: str, norm: nn.LayerNorm, values: str, output: str = "") -> str:
        """Add a layer norm with its weights."""
        weights = (
            self.weight(f"{name}.weight", norm.weight),
            self.weight(f"{name}.bias", norm.bias),
        )
        kind = "LayerNormalization"
        return self.node(kind, values, *weights, output=output, axis=-1, epsilon=norm.eps)

    def take(self, values: str, index: int, *, axis: int, output: str = "") -> str:
        """Add the choice of the values at an index of an axis, without that axis."""
        chosen = self.node("Gather", values, self.constant([index]), axis=axis)
        return self.node("Squeeze", chosen, self.constant([axis]), output=output)

    def quantize(self, values: str) -> tuple[str, str, str]:
        """Add a node that quantizes values, once; return the names of integers, scale and zero."""
        if values not in self._quantized:
            names = (f"{values}_uint8", f"{values}_scale", f"{values}_zero")
            self._add("DynamicQuantizeLinear", [values], names)
            self._quantized[values] = names
        return self._quantized[values]

    def branch(self, write: Callable[[], object], shape: Shape) -> Any:
        """Build a branch of an `If` node; its output, float32, is that of the last node it adds."""
        outside, self._nodes = self._nodes, []
        write()
        inside, self._nodes = self._nodes, outside
        output = self._describe(inside[-1].output[0], torch.float32, shape)
        return self._onnx.helper.make_graph(inside, f"branch_{self._num_nodes}", [], [output])

    def build(
        self,
        inputs: Mapping[str, tuple[torch.dtype, Shape]],
        outputs: Mapping[str, Shape],
    ) -> Any:
        """Build a `ModelProto` whose weights are external data; a dynamic size is given as a name.

        All outputs are float32.
        """
        helper, proto = self._onnx.helper, self._onnx.TensorProto
        weights = []
        for name, weight in self.weights.items():
            kind = getattr(proto, ELEMENT_TYPES[weight.dtype])
            place = proto.EXTERNAL
            declared = proto(name=name, data_type=kind, dims=weight.shape, data_location=place)
            declared.external_data.add(key="location", value="weights")
            weights.append(declared)
        graph = helper.make_graph(
            self._nodes,
            "bert",
            [self._describe(name, dtype, shape) for name, (dtype, shape) in inputs.items()],
            [self._describe(name, torch.float32, shape) for name, shape in outputs.items()],
            [*self._constants.values(), *weights],
        )
        opsets = [helper.make_opsetid(*pair) for pair in self._opsets.items()]
        return helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=helper.find_min_ir_version_for(opsets, ignore_unknown=True),
            producer_name=PRODUCER,
        )

    def _add(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> None:
        name = f"{operator}_{self._num_nodes}"
        self._num_nodes += 1
        make_node = self._onnx.helper.make_node
        self._nodes.append(make_node(operator, inputs, outputs, name, **attributes))

    def _describe(self, name: str, dtype: torch.dtype, shape: Shape) -> Any:
        element_type = getattr(self._onnx.TensorProto, ELEMENT_TYPES[dtype])
        return self._onnx.helper.make_tensor_value_info(name, element_type, list(shape))


def import_extra(package: str) -> Any:
    """Import a package of the extra `onnx`."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtraError(
            f"{package} can't be loaded ({error}); {describe_install('onnx')}"
        ) from None


Activation: TypeAlias = Callable[[OnnxGraph, str], str]
GraphPrecision: TypeAlias = Literal["fp32", "int8"]


def operator(name: str, **attributes: str) -> Activation:
    """Return the activation that is a single operator of ONNX."""
    return lambda graph, values: graph.node(name, values, **attributes)


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


# The keys of `bertkit.nn.block.ACTIVATIONS`.
ACTIVATION_NODES: dict[str, Activation] = {
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


class EncoderWriter(ABC):
    """Writes an encoder's nodes; a subclass says how a batch lies in the graph's tensors."""

    activations: ClassVar[Mapping[str, Activation]] = ACTIVATION_NODES

    def __init__(
        self, graph: OnnxGraph, config: BertConfig, precision: GraphPrecision = "fp32"
    ) -> None:
        self.graph, self.config, self.precision = graph, config, precision

    def write_layers(
        self, encoder: BertEncoder, ids: tuple[str, str], num_layers: int, output: str = ""
    ) -> list[str]:
        """Write the first layers for token ids and segments; return the names of their states.

        Layer 0 is the output of the embeddings, n that of block n; `output` names the last one.
        """
        graph, name, embeddings = self.graph, "encoder.embeddings", encoder.embeddings
        words = graph.weight(f"{name}.word.weight", embeddings.word.weight)
        segments = graph.weight(f"{name}.token_type.weight", embeddings.token_type.weight)
        positions = graph.weight(f"{name}.position.weight", embeddings.position.weight)
        position = self.write_positions(positions, ids[0])
        word, segment = graph.node("Gather", words, ids[0]), graph.node("Gather", segments, ids[1])
        summed = graph.node("Add", graph.node("Add", word, segment), position)
        states = [graph.norm(f"{name}.norm", embeddings.norm, summed)]
        for number in range(num_layers):
            layer, named = encoder.layers[number], output if number == num_layers - 1 else ""
            assert isinstance(layer, EncoderBlock)
            states.append(self._write_block(f"encoder.layers.{number}", layer, states[-1], named))
        return states

    @abstractmethod
    def write_positions(self, positions: str, input_ids: str) -> str:
        """Write the choice of the position embedding of each token."""

    @abstractmethod
    def write_attention(self, attention: SelfAttention, parts: Iterable[str]) -> str:
        """Write attention without its output layer.

        The products that make queries, keys and values are written as `parts` yields them.
        """

    @abstractmethod
    def write_product(self, name: str, values: str, weight: Tensor, bias: Tensor) -> str:
        """Write the product of values with a float32 matrix, plus a bias."""

    def _write_block(self, name: str, layer: EncoderBlock, tokens: str, output: str) -> str:
        graph, attention, feed_forward = self.graph, layer.attention, layer.feed_forward
        linear = attention.query_key_value
        weights, biases = linear.weight.chunk(3), linear.bias.chunk(3)
        parts = (
            self._multiply(f"{name}.attention.{part}", tokens, weight, bias)
            for part, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True)
        )
        context = self.write_attention(attention, parts)
        mixed = self._write_linear(f"{name}.attention.output", attention.output, context)
        mixed = graph.node("Add", mixed, tokens)
        tokens = graph.norm(f"{name}.attention_norm", layer.attention_norm, mixed)
        inner = self._write_linear(f"{name}.feed_forward.up", feed_forward.up, tokens)
        inner = self.activations[self.config.hidden_act](graph, inner)
        outer = self._write_linear(f"{name}.feed_forward.down", feed_forward.down, inner)
        outer = graph.node("Add", outer, tokens)
        return graph.norm(f"{name}.feed_forward_norm", layer.feed_forward_norm, outer, output)

    def _write_linear(self, name: str, linear: nn.Linear, values: str) -> str:
        return self._multiply(name, values, linear.weight, linear.bias)

    def _multiply(self, name: str, values: str, weight: Tensor, bias: Tensor) -> str:
        if self.precision == "int8":
            return multiply_int8(self.graph, name, values, weight, bias)
        return self.write_product(name, values, weight, bias)


LARGEST = 127  # -128 isn't used, so that a weight and its negative are equally exact
FLOAT = 1  # ONNX's number of the type


def multiply_int8(
    graph: OnnxGraph, name: str, values: str, weight: Float[Tensor, "out in"], bias: Tensor
) -> str:
    """Write the product of values with an int8 matrix, plus a bias; values are quantized once.

    The matrix is rounded to integers from -127 to 127, with a scale for each of its rows.
    """
    weight = weight.detach().float()
    scales = weight.abs().amax(dim=1).clamp(min=torch.finfo(torch.float32).tiny) / LARGEST
    integers = (weight / scales[:, None]).round().to(torch.int8)
    matrix = graph.weight(f"{name}.weight{TRANSPOSED}", integers.t())
    scale = graph.weight(f"{name}.weight{SCALE}", scales)
    inputs, input_scale, input_zero = graph.quantize(values)
    sums = graph.node("Cast", graph.node("MatMulInteger", inputs, matrix, input_zero), to=FLOAT)
    product = graph.node("Mul", sums, graph.node("Mul", input_scale, scale))
    return graph.node("Add", product, graph.weight(f"{name}.bias", bias))
