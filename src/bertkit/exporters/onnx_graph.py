"""An ONNX graph that is being written: its nodes, and its weights beside it.

The graph says of a weight only name, type and shape, so it stays small however large the model is,
and nothing is copied before somebody wants the weights in a file. Nothing of torch's own exporter
is used: an encoder is a dozen kinds of nodes, and these are written as they are to run.

Source: onnx.ai, "Open Neural Network Exchange Intermediate Representation", and its operators.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import torch
from torch import Tensor

from bertkit.base.errors import MissingExtraError

MICROSOFT = "com.microsoft"  # ONNX Runtime's own operators, all of version 1
ELEMENT_TYPES = {
    torch.float32: "FLOAT",
    torch.int64: "INT64",
    torch.int32: "INT32",
    torch.bool: "BOOL",
}

Shape: TypeAlias = Sequence[int | str]


class OnnxGraph:
    """Nodes in the order in which they run, constants, and weights.

    Args:
        opset: version of ONNX's operators.

    Attributes:
        weights: by name; views of the model's own, perhaps transposed ones.

    Raises:
        MissingExtraError: `bertkit[onnx]` isn't installed.
    """

    def __init__(self, opset: int) -> None:
        self._onnx = import_extra("onnx")
        self._opsets = {"": opset}
        self._nodes: list[Any] = []
        self._num_nodes = 0
        self._constants: dict[str, Any] = {}
        self.weights: dict[str, Tensor] = {}

    def weight(self, name: str, tensor: Tensor) -> str:
        """Take a weight in, as it is: a view stays one until somebody wants it in order."""
        self.weights[name] = tensor.detach()
        return name

    def constant(self, value: float | list[int]) -> str:
        """A small value: numbers that aren't in a list are float32, those in one int64."""
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
        """Add a node with one output; returns the output's name, which may be chosen."""
        name = f"{operator}_{self._num_nodes}"
        self._num_nodes += 1
        self._opsets.setdefault(domain, 1)
        make_node = self._onnx.helper.make_node
        node = make_node(operator, inputs, [output or name], name, domain=domain, **attributes)
        self._nodes.append(node)
        return output or name

    def branch(self, write: Callable[[], object], shape: Shape) -> Any:
        """One of the two graphs of an `If`.

        Args:
            write: adds its nodes; what the last one gives, float32, is what the branch gives.
            shape: sizes of that.
        """
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
        """The model, a `ModelProto` whose weights are declared as lying outside of it.

        Args:
            inputs: type and sizes by name; a size that isn't fixed has a name.
            outputs: sizes by name; all are float32.
        """
        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes,
            "bert",
            [self._describe(name, dtype, shape) for name, (dtype, shape) in inputs.items()],
            [self._describe(name, torch.float32, shape) for name, shape in outputs.items()],
            [*self._constants.values(), *map(self._declare, self.weights)],
        )
        opsets = [helper.make_opsetid(*pair) for pair in self._opsets.items()]
        return helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=helper.find_min_ir_version_for(opsets, ignore_unknown=True),
            producer_name="bertkit",
        )

    def _describe(self, name: str, dtype: torch.dtype, shape: Shape) -> Any:
        element_type = getattr(self._onnx.TensorProto, ELEMENT_TYPES[dtype])
        return self._onnx.helper.make_tensor_value_info(name, element_type, list(shape))

    def _declare(self, name: str) -> Any:
        tensor = self._onnx.TensorProto(
            name=name,
            data_type=self._onnx.TensorProto.FLOAT,
            dims=self.weights[name].shape,
            data_location=self._onnx.TensorProto.EXTERNAL,
        )
        tensor.external_data.add(key="location", value="weights")
        return tensor


def import_extra(package: str) -> Any:
    """A package of `bertkit[onnx]`."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtraError(
            f"{package} can't be loaded ({error}); pip install 'bertkit[onnx]'"
        ) from None
