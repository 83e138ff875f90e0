"""A builder of ONNX graphs that keeps weights outside the graph.

The graph holds only name, type and shape of each weight, so it stays small for any model, and no
weight is copied before it is written to a file. torch's own exporter isn't used: an encoder needs
only a dozen kinds of nodes, and here each is written exactly as it should run.

Source: onnx.ai, "Open Neural Network Exchange Intermediate Representation", and its operators.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy.typing as npt

from bertkit.checkpoints.onnx_file import PRODUCER

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = Sequence[int | str]


class OnnxGraph:
    """An ONNX graph: nodes in execution order, constants, and weights.

    `rename` gives a weight's name in the file for its name in bertkit's models.
    """

    def __init__(self, opset: int, rename: Callable[[str], str] = str) -> None:
        self._onnx = import_module("onnx")
        self._rename = rename
        self._opset = opset
        self._nodes: list[Any] = []
        self._num_nodes = 0
        self._constants: dict[str, Any] = {}
        self._quantized: dict[str, tuple[str, str, str]] = {}
        # by name in the file; maybe transposed views
        self.weights: dict[str, Array] = {}

    def weight(self, name: str, values: Array) -> str:
        """Add a weight once and return its name; it isn't copied, and may be a view."""
        name = self._rename(name)
        self.weights[name] = values
        return name

    def constant(self, value: float | list[int] | list[float], name: str = "") -> str:
        """Add a small constant and return its name, by default generated.

        Whole numbers in a list are int64, others float32.
        """
        name = name or f"constant_{value}".replace(" ", "")
        if name not in self._constants:
            values, shape = (value, [len(value)]) if isinstance(value, list) else ([value], [])
            is_whole = isinstance(value, list) and isinstance(value[0], int)
            element_type = getattr(self._onnx.TensorProto, "INT64" if is_whole else "FLOAT")
            self._constants[name] = self._onnx.helper.make_tensor(name, element_type, shape, values)
        return name

    def node(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node with one output and return the output's name, by default generated."""
        name = output or f"{operator}_{self._num_nodes}"
        self._add(operator, inputs, [name], **attributes)
        return name

    def name_output(self, values: str, name: str) -> str:
        """Add a node that gives values the name of an output."""
        return self.node("Identity", values, output=name)

    def take(self, values: str, index: int, *, axis: int, output: str = "") -> str:
        """Add the choice of the values at an index of an axis, without that axis."""
        chosen = self.node("Gather", values, self.constant([index]), axis=axis)
        return self.node("Squeeze", chosen, self.constant([axis]), output=output)

    def split(self, values: str, num_parts: int) -> list[str]:
        """Add a node that splits the last axis into equal parts, and return their names."""
        names = [f"{values}_{number}" for number in range(num_parts)]
        self._add("Split", [values], names, axis=-1)
        return names

    def quantize(self, values: str) -> tuple[str, str, str]:
        """Add a node that quantizes values, once; return the names of integers, scale and zero."""
        if values not in self._quantized:
            names = (f"{values}_uint8", f"{values}_scale", f"{values}_zero")
            self._add("DynamicQuantizeLinear", [values], names)
            self._quantized[values] = names
        return self._quantized[values]

    def build(self, inputs: Mapping[str, Shape], outputs: Mapping[str, Shape]) -> Any:
        """Build a `ModelProto` whose weights are external data; a dynamic size is given as a name.

        All inputs are int64, all outputs float32.
        """
        helper, proto = self._onnx.helper, self._onnx.TensorProto
        weights = []
        for name, weight in self.weights.items():
            kind = helper.np_dtype_to_tensor_dtype(weight.dtype)
            place = proto.EXTERNAL
            declared = proto(name=name, data_type=kind, dims=weight.shape, data_location=place)
            declared.external_data.add(key="location", value="weights")
            weights.append(declared)
        describe = helper.make_tensor_value_info
        graph = helper.make_graph(
            self._nodes,
            "bert",
            [describe(name, proto.INT64, list(shape)) for name, shape in inputs.items()],
            [describe(name, proto.FLOAT, list(shape)) for name, shape in outputs.items()],
            [*self._constants.values(), *weights],
        )
        opsets = [helper.make_opsetid("", self._opset)]
        return helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=helper.find_min_ir_version_for(opsets),
            producer_name=PRODUCER,
        )

    def _add(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> None:
        name = f"{operator}_{self._num_nodes}"
        self._num_nodes += 1
        make_node = self._onnx.helper.make_node
        self._nodes.append(make_node(operator, inputs, outputs, name, **attributes))
