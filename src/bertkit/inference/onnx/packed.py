"""The encoder as an ONNX graph for ONNX Runtime on a CPU, with packed batches (no padding).

Linear layers, norms and activations process the concatenated tokens of all sequences,
`[tokens, hidden]`, and use the model's weights without a copy. Only attention arranges the tokens
in rows, one for each sequence. If all sequences have the same length, that is a reshape; otherwise
`rows` holds the token index of each position, `places` the position of each token, and `lengths`
the number of tokens in each row.

Norms and GELU are standard operators, which ONNX Runtime (1.31) runs faster than the operators that
it fuses them into. So a session must not fuse them: it uses the basic optimization level.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from bertkit.inference.onnx.graph import (
    ACTIVATION_NODES,
    MICROSOFT,
    EncoderWriter,
    GraphPrecision,
    OnnxGraph,
    Shape,
    operator,
)
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder
from bertkit.nn.attention import SelfAttention

OPSET = 20  # the first with GELU
# Inputs of a graph for sequences of one length; `shape` is [sequences, length, hidden].
UNIFORM_INPUTS: dict[str, tuple[torch.dtype, Shape]] = {
    "input_ids": (torch.int64, ("tokens",)),
    "token_type_ids": (torch.int64, ("tokens",)),
    "position_ids": (torch.int64, ("tokens",)),
    "shape": (torch.int64, (3,)),
}
# Inputs of a graph for sequences of any lengths.
MIXED_INPUTS: dict[str, tuple[torch.dtype, Shape]] = {
    **UNIFORM_INPUTS,
    "is_uniform": (torch.bool, ()),
    "rows": (torch.int64, ("sequences", "longest")),
    "places": (torch.int64, ("tokens",)),
    "lengths": (torch.int32, ("sequences",)),
}


class PackedWriter(EncoderWriter):
    """Writes an encoder for packed batches; `is_mixed` allows sequences of different lengths."""

    activations: ClassVar = {
        **ACTIVATION_NODES,  # without the GELU operator, which a padded graph's opset doesn't have
        "gelu": operator("Gelu", approximate="none"),
        "gelu_new": operator("Gelu", approximate="tanh"),
        "gelu_python": operator("Gelu", approximate="none"),
        "gelu_pytorch_tanh": operator("Gelu", approximate="tanh"),
    }

    def __init__(
        self,
        graph: OnnxGraph,
        config: BertConfig,
        precision: GraphPrecision = "fp32",
        *,
        is_mixed: bool,
    ) -> None:
        super().__init__(graph, config, precision)
        self._is_mixed = is_mixed

    def write(self, encoder: BertEncoder, layers: Sequence[int]) -> list[str]:
        """Write the nodes up to the highest layer; return the layers' names, `[tokens, hidden]`."""
        states = self.write_layers(encoder, ("input_ids", "token_type_ids"), max(layers))
        return [states[layer] for layer in layers]

    def write_positions(self, positions: str, input_ids: str) -> str:
        """Write the choice of the position embedding of each token."""
        return self.graph.node("Gather", positions, "position_ids")

    def write_attention(self, attention: SelfAttention, parts: Iterable[str]) -> str:
        """Write attention without its output layer."""
        heads, num_heads = list(parts), attention.num_heads
        if not self._is_mixed:
            return self._attend_uniform(heads, num_heads)
        branches = {
            "then_branch": lambda: self._attend_uniform(heads, num_heads),
            "else_branch": lambda: self._attend_mixed(heads, num_heads),
        }
        shape = ("tokens", self.config.hidden_size)
        graphs = {name: self.graph.branch(write, shape) for name, write in branches.items()}
        return self.graph.node("If", "is_uniform", **graphs)

    def write_product(self, name: str, values: str, weight: Tensor, bias: Tensor) -> str:
        """Write the product of values with a float32 matrix, plus a bias."""
        names = (
            self.graph.weight(f"{name}.weight", weight),
            self.graph.weight(f"{name}.bias", bias),
        )
        return self.graph.node("Gemm", values, *names, transB=1)

    def _attend_uniform(self, parts: Sequence[str], num_heads: int) -> str:
        """Write attention for sequences of one length, without mask or padding."""
        return self._attend(
            [self.graph.node("Reshape", part, "shape") for part in parts], num_heads
        )

    def _attend_mixed(self, parts: Sequence[str], num_heads: int) -> str:
        """Write attention for sequences of different lengths, in rows as long as the longest."""
        rows = [self.graph.node("Gather", part, "rows") for part in parts]
        return self.graph.node("Gather", self._attend([*rows, "", "lengths"], num_heads), "places")

    def _attend(self, inputs: Sequence[str], num_heads: int) -> str:
        graph = self.graph
        context = graph.node("MultiHeadAttention", *inputs, domain=MICROSOFT, num_heads=num_heads)
        return graph.node("Reshape", context, graph.constant([-1, self.config.hidden_size]))
