"""The CPU engine: ONNX Runtime, with a graph built by bertkit.

The graph is built in memory from the model's weights; nothing is written to disk, and ONNX Runtime
reads the weights from the model's memory. Each session keeps a copy of the matrices, packed in the
layout that its kernels need.

A batch is split into parts of a few hundred tokens, and each thread computes whole parts alone:
the data of a part stays in that core's cache, and no thread waits for another inside the model. On
a single sequence, such as a query, all threads work together.
"""

import ctypes
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any
from weakref import WeakSet

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import SettingsError
from bertkit.exporters.onnx_graph import OnnxGraph
from bertkit.exporters.onnx_layers import GraphPrecision
from bertkit.exporters.onnx_packed import MIXED_INPUTS, OPSET, UNIFORM_INPUTS, write_packed
from bertkit.inference.engines.engine import HasEncoder, resolve_layers
from bertkit.inference.engines.names import Precision
from bertkit.inference.engines.onnx_session import OnnxSession
from bertkit.nn.packing import PackedBatch

TOKENS_PER_THREAD = 2048  # of a batch: enough parts that no thread idles long at the end
MAX_PART_TOKENS = 256
# Minimum tokens of one length for a separate part: attention is faster without a mask.
UNIFORM_PART_TOKENS = 96

STARTED = {"_together", "_alone", "_threads"}  # what has threads
STARTED_ENGINES: "WeakSet[OnnxEngine]" = WeakSet()


class OnnxEngine:
    """Runs a model's encoder in ONNX Runtime on a CPU, in float32 or with integer matrices.

    Args:
        model: any model, on a CPU; only its encoder is used.
        layers: layers whose hidden states are returned, as in `resolve_layers`.
        precision: fp32, or int8 for the matrices of linear layers. In int8 the inputs of a product
            share a scale, so that the other sequences of a batch change a result a little.

    Attributes:
        num_threads: torch's number of threads when the engine is built.

    Raises:
        SettingsError: the model has no such layer, or is causal.
    """

    name = "onnx"

    def __init__(
        self,
        model: HasEncoder,
        layers: Iterable[int] = (-1,),
        precision: Precision = "fp32",
    ) -> None:
        if model.config.is_decoder:
            raise SettingsError("the engine onnx supports only bidirectional models; use torch")
        self.precision = precision
        self.layers = resolve_layers(layers, model.config.num_hidden_layers)
        self.num_threads = torch.get_num_threads()
        self.tokens_per_batch = TOKENS_PER_THREAD * self.num_threads
        self._given = tuple(dict.fromkeys(self.layers))  # the graph outputs each layer once
        self._model = model

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs, also in another process; it starts sessions of its own."""
        return {name: value for name, value in vars(self).items() if name not in STARTED}

    @cached_property
    def _together(self) -> OnnxSession:
        """The session in which all threads work on one sequence."""
        return self._start(self.num_threads, is_mixed=False)

    @cached_property
    def _alone(self) -> OnnxSession:
        """The session in which each calling thread works on its own part."""
        return self._start(1, is_mixed=True)

    def _start(self, num_threads: int, *, is_mixed: bool) -> OnnxSession:
        STARTED_ENGINES.add(self)
        graph = OnnxGraph(OPSET)
        encoder, config = self._model.encoder, self._model.config
        kind: GraphPrecision = "int8" if self.precision == "int8" else "fp32"
        outputs = write_packed(
            graph, encoder, config, self._given, is_mixed=is_mixed, precision=kind
        )
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

    def __call__(self, batch: PackedBatch) -> list[Float[Tensor, "tokens hidden"]]:
        """Compute hidden states in float32, one tensor for each of `layers`."""
        size = self._model.config.hidden_size
        states = [torch.empty(batch.num_tokens, size) for _ in self._given]
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
    they are given a reference that is never dropped.
    """
    for engine in STARTED_ENGINES:
        for name in STARTED & vars(engine).keys():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(vars(engine).pop(name)))
    STARTED_ENGINES.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=leave_sessions)


def cut_parts(lengths: Sequence[int], num_threads: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each part of a batch, in sequences.

    A part ends before it grows too large, or where the length changes if it is large enough. A
    small batch is split about evenly among the threads.
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
