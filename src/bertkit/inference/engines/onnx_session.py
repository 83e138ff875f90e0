"""ONNX Runtime sessions that compute hidden states of a packed batch."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from bertkit.exporters.onnx_graph import import_extra
from bertkit.hardware.processor import has_native_int8
from bertkit.nn.packing import PackedBatch

QUIET = 3  # ONNX Runtime's log level for errors, which are raised as exceptions too


class OnnxSession:
    """A session of the packed graph; several threads may call it at once.

    Args:
        model: the serialized graph of `exporters/onnx_packed.py`.
        weights: external initializers by name; their memory is used and must stay allocated.
        outputs: names of the hidden states that it returns.
        num_threads: number of threads that share the work of a call, the caller included.
        fuses: let ONNX Runtime join nodes into its own operators, which makes a product of integers
            one kernel; in float32, layer norms and GELU would be slower.

    Raises:
        MissingExtraError: `bertkit[onnx]` isn't installed.
    """

    def __init__(
        self,
        model: bytes,
        weights: Mapping[str, Tensor],
        outputs: Sequence[str],
        num_threads: int,
        *,
        fuses: bool = False,
    ) -> None:
        onnxruntime = import_extra("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = num_threads
        options.log_severity_level = QUIET
        if fuses and not has_native_int8():
            # Without such instructions, products of int8 may overflow 16 bits; these can't.
            options.add_session_config_entry("session.x64quantprecision", "1")
        levels = onnxruntime.GraphOptimizationLevel
        options.graph_optimization_level = (
            levels.ORT_ENABLE_EXTENDED if fuses else levels.ORT_ENABLE_BASIC
        )
        self._weights = [
            onnxruntime.OrtValue.ortvalue_from_numpy(weight.contiguous().numpy())
            for weight in weights.values()
        ]
        options.add_external_initializers(list(weights), self._weights)
        providers = ["CPUExecutionProvider"]
        self._session: Any = onnxruntime.InferenceSession(model, options, providers=providers)
        self._inputs = {value.name for value in self._session.get_inputs()}
        self._outputs = outputs

    def run(
        self, batch: PackedBatch, start: int, end: int, states: Sequence[Float[Tensor, "tokens h"]]
    ) -> None:
        """Compute some sequences of a batch, and write to their rows of `states`.

        Args:
            batch: the batch, on a CPU.
            start: index of the first sequence.
            end: index after the last sequence.
            states: a contiguous tensor for each output, with one row per token of the batch.
        """
        first = sum(batch.lengths[:start])
        lengths = batch.lengths[start:end]
        tokens = slice(first, first + sum(lengths))
        binding = self._session.io_binding()
        inputs = {
            "input_ids": batch.input_ids[tokens].numpy(),
            "token_type_ids": batch.token_type_ids[tokens].numpy(),
            "position_ids": batch.position_ids[tokens].numpy(),
            "shape": np.array([len(lengths), max(lengths), states[0].shape[1]]),
        }
        if "rows" in self._inputs:
            inputs |= lay_out(lengths)
        for name in self._inputs:
            binding.bind_cpu_input(name, inputs[name])
        for name, state in zip(self._outputs, states, strict=True):
            rows = state[tokens]
            shape = tuple(rows.shape)
            binding.bind_output(name, "cpu", 0, np.float32, shape, rows.data_ptr())
        self._session.run_with_iobinding(binding)


def lay_out(lengths: Sequence[int]) -> dict[str, np.ndarray]:
    """Return the indexes that pad tokens for attention, and that unpad its result."""
    sizes = np.array(lengths, dtype=np.int32)
    is_token = np.arange(sizes.max()) < sizes[:, None]
    rows = np.zeros(is_token.shape, dtype=np.int64)
    rows[is_token] = np.arange(sizes.sum())
    return {
        "is_uniform": np.array(is_token.all()),
        "rows": rows,
        "places": np.flatnonzero(is_token),
        "lengths": sizes,
    }
