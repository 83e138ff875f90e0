"""The CPU engine: ONNX Runtime, with a graph built by bertkit.

The graph is built in memory from the model's weights; nothing is written to disk, and ONNX Runtime
reads the weights from the model's memory. Each session keeps a copy of the matrices, packed in the
layout that its kernels need.

A batch is split into parts of a few hundred tokens, and each thread computes whole parts alone:
the data of a part stays in that core's cache, and no thread waits for another inside the model. On
a single sequence, such as a query, all threads work together.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any
from weakref import WeakSet

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from bertkit.base.errors import SettingsError
from bertkit.inference.engines.torch_engine import HasEncoder, ModelEngine
from bertkit.inference.onnx.graph import GraphPrecision, OnnxGraph, import_extra
from bertkit.inference.onnx.packed import MIXED_INPUTS, OPSET, UNIFORM_INPUTS, PackedWriter
from bertkit.inference.settings import Precision
from bertkit.nn.packed_ids import PackedIds
from bertkit.training.processor import has_native_int8

QUIET = 3  # ONNX Runtime's log level for errors, which are raised as exceptions too


class OnnxSession:
    """A session of the graph of `inference/onnx/packed.py`; several threads may call it at once.

    The memory of `weights`, external initializers by name, is used and must stay allocated.
    `num_threads` counts the caller too. `fuses` lets ONNX Runtime join nodes, which makes a product
    of integers one kernel; float32 norms and GELU get slower.
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
        self,
        batch: PackedIds,
        start: int,
        end: int,
        states: Sequence[Float32[np.ndarray, "tokens h"]],
    ) -> None:
        """Compute the sequences from `start` to before `end`, and write to their rows of `states`.

        `states` has a contiguous array for each output, with one row per token of the whole batch.
        """
        first = sum(batch.lengths[:start])
        lengths = batch.lengths[start:end]
        tokens = slice(first, first + sum(lengths))
        binding = self._session.io_binding()
        inputs = {
            "input_ids": batch.input_ids[tokens],
            "token_type_ids": batch.token_type_ids[tokens],
            "position_ids": batch.position_ids[tokens],
            "shape": np.array([len(lengths), max(lengths), states[0].shape[1]]),
        }
        if "rows" in self._inputs:  # indexes that pad tokens for attention, and unpad its result
            sizes = np.array(lengths, dtype=np.int32)
            is_token = np.arange(sizes.max()) < sizes[:, None]
            rows = np.zeros(is_token.shape, dtype=np.int64)
            rows[is_token] = np.arange(sizes.sum())
            inputs |= {"is_uniform": np.array(is_token.all()), "rows": rows}
            inputs |= {"places": np.flatnonzero(is_token), "lengths": sizes}
        for name in self._inputs:
            binding.bind_cpu_input(name, inputs[name])
        for name, state in zip(self._outputs, states, strict=True):
            part = state[tokens]
            binding.bind_output(name, "cpu", 0, np.float32, part.shape, part.ctypes.data)
        self._session.run_with_iobinding(binding)


TOKENS_PER_THREAD = 2048  # of a batch: enough parts that no thread idles long at the end
MAX_PART_TOKENS = 256
# Minimum tokens of one length for a separate part: attention is faster without a mask.
UNIFORM_PART_TOKENS = 96

STARTED = {"_together", "_alone", "_threads"}  # what has threads
STARTED_ENGINES: "WeakSet[OnnxEngine]" = WeakSet()


class OnnxEngine(ModelEngine):
    """Runs a model's encoder in ONNX Runtime on a CPU, in float32 or with integer matrices.

    In int8 the inputs of a linear layer's product share a scale, so that the other sequences of a
    batch change a result a little.
    """

    name = "onnx"

    def __init__(
        self,
        model: HasEncoder,
        layers: Iterable[int] = (-1,),
        precision: Precision = "fp32",
    ) -> None:
        if not model.config.is_bidirectional:
            raise SettingsError("the engine onnx supports only bidirectional models; use torch")
        super().__init__(model, layers, precision)
        self.num_threads = torch.get_num_threads()
        self.tokens_per_batch = TOKENS_PER_THREAD * self.num_threads
        self._given = tuple(dict.fromkeys(self.layers))  # the graph outputs each layer once

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs, also in another process; it starts sessions of its own."""
        return {name: value for name, value in vars(self).items() if name not in STARTED}

    @cached_property
    def _together(self) -> OnnxSession:
        """The session in which all threads work on one sequence."""
        return self._start(self.num_threads, is_mixed=False)

    @cached_property
    def _alone(self) -> OnnxSession:
        """The session in which each calling thread works on its own part of a batch."""
        return self._start(1, is_mixed=True)

    def _start(self, num_threads: int, *, is_mixed: bool) -> OnnxSession:
        STARTED_ENGINES.add(self)
        graph, config = OnnxGraph(OPSET), self.config
        kind: GraphPrecision = "int8" if self.precision == "int8" else "fp32"
        writer = PackedWriter(graph, config, kind, is_mixed=is_mixed)
        outputs = writer.write(self.encoder, self._given)
        shapes = dict.fromkeys(outputs, ("tokens", config.hidden_size))
        model = graph.build(MIXED_INPUTS if is_mixed else UNIFORM_INPUTS, shapes)
        return OnnxSession(
            model.SerializeToString(),
            graph.weights,
            outputs,
            num_threads,
            fuses=self.precision == "int8",
        )

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.num_threads)

    def __call__(self, batch: PackedIds) -> list[Float32[np.ndarray, "tokens hidden"]]:
        """As in `Engine`."""
        size = self.config.hidden_size
        states = [np.empty((batch.num_tokens, size), dtype=np.float32) for _ in self._given]
        if len(batch.lengths) == 1 and self.num_threads > 1:
            self._together.run(batch, 0, 1, states)
        else:
            run, parts = self._alone.run, cut_parts(batch.lengths, self.num_threads)
            for future in [self._threads.submit(run, batch, *part, states) for part in parts]:
                future.result()
        of_layer = dict(zip(self._given, states, strict=True))
        return [of_layer[layer] for layer in self.layers]


def leave_sessions() -> None:
    """In the child of a fork, have the engines start sessions again.

    Those of the parent lack their threads and would wait for them even when they are deleted, so
    they are put into a cycle of references that nothing ends: garbage collection doesn't look into
    an array of NumPy.
    """
    for engine in STARTED_ENGINES:
        for name in STARTED & vars(engine).keys():
            kept = np.empty(2, dtype=object)
            kept[:] = kept, vars(engine).pop(name)
    STARTED_ENGINES.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=leave_sessions)


def cut_parts(lengths: Sequence[int], num_threads: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each part of a batch that a thread computes, in sequences.

    A part ends before it grows too large, or where the sequences' length changes if it is large
    enough. A small batch is split about evenly among the threads.
    """
    limit = min(MAX_PART_TOKENS, math.ceil(sum(lengths) / num_threads))
    start, num_tokens = 0, 0
    for index, length in enumerate(lengths):
        is_full = num_tokens + length > limit
        is_other = num_tokens >= UNIFORM_PART_TOKENS and length != lengths[index - 1]
        if index > start and (is_full or is_other):
            yield start, index
            start, num_tokens = index, 0
        num_tokens += length
    yield start, len(lengths)
