"""The engine of CPUs: OpenVINO, with a graph that bertkit writes from the weights.

The graph is built in memory; nothing is written to disk, and OpenVINO reads the weights where they
lie. Each compiled model keeps a copy of the matrices in the layout that its kernels need.

The embeddings of a batch's tokens are looked up and added here, so that those of unused words are
never read. A batch is split into parts, and each thread computes whole parts alone: no thread
waits for another inside the model. On a single sequence, such as a query, all threads work
together. Models are compiled when they are first used.

Source: docs.openvino.ai, "CPU Device".
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import WeakSet

import numpy as np

from bertkit.base.errors import SettingsError
from bertkit.base.parts import count_cores
from bertkit.checkpoints.elements import ElementType, StoredRows
from bertkit.inference.engines.engine import ROWS_AT_A_TIME, Engine, resolve_layers
from bertkit.inference.graphs.bert import POOLER, write_pooler
from bertkit.inference.graphs.graph import MASKED_SCORE, WORDS, Weights
from bertkit.inference.graphs.numpy_graph import NumpyGraph
from bertkit.inference.heads import (
    SUMMARY_SCORES,
    TOKEN_SCORES,
    mean_tokens,
    score_pairs,
    score_words,
)
from bertkit.inference.settings import Precision
from bertkit.models.bert.config import BertConfig
from bertkit.nn.packed_ids import PackedIds
from bertkit.nn.parts import BERT_HEAD
from bertkit.nn.positions import rotary_waves
from bertkit.training.processor import has_native_bf16

if TYPE_CHECKING:
    from jaxtyping import Float32, Int64


PART_TOKENS = 2048  # of a thread at a time
PARTS_PER_THREAD = 4  # of a batch: enough that no thread idles long at the end
# Inputs of a product of integers share a scale within a token by so many features. Groups of 384
# are 5 % faster on Zen 4, with twice the error; groups of 64 are 6 % slower, with three quarters.
GROUP_FEATURES = 128
# OpenVINO compiles kernels for each shape, and by itself keeps 5,000 of a kind in each stream. A
# pass uses about five of a kind, all layers the same ones.
KEPT_KERNELS = 512  # of a kind, in all streams of a model
LEAST_KEPT_KERNELS = 32  # in a stream

Part: TypeAlias = tuple[list[Any], slice]  # inputs of a compiled model, and its rows


class CompiledModel:
    """An encoder compiled for a number of threads; several threads may call it at once.

    Of a model for one sequence at a time, all threads work on that sequence.
    """

    def __init__(
        self, model: Any, precision: Precision, num_threads: int, num_streams: int
    ) -> None:
        # Beside integers, bf16 costs no precision that can be measured.
        is_bf16 = precision == "bf16" or (precision == "int8" and has_native_bf16())
        options = {
            "INFERENCE_PRECISION_HINT": "bf16" if is_bf16 else "f32",
            "INFERENCE_NUM_THREADS": num_threads,
            "NUM_STREAMS": num_streams,
            "ENABLE_CPU_PINNING": False,  # two processes would share the first processors
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": GROUP_FEATURES if precision == "int8" else 0,
            "CPU_RUNTIME_CACHE_CAPACITY": max(KEPT_KERNELS // num_streams, LEAST_KEPT_KERNELS),
        }
        compiled = load_core().compile_model(model, "CPU", options)
        check_precision(compiled, "bf16" if is_bf16 else "f32")
        self._idle: SimpleQueue[Any] = SimpleQueue()
        for _ in range(num_streams):
            self._idle.put(compiled.create_infer_request())

    def run(
        self, parts: Iterable[Part], states: Sequence[Float32[np.ndarray, "rows hidden"]]
    ) -> None:
        """Compute the parts of a batch, and write to `states`, an array for each output."""
        running: deque[tuple[Any, slice]] = deque()
        try:
            for inputs, rows in parts:
                if self._idle.empty() and running:
                    self._finish(*running.popleft(), states)
                running.append((self._idle.get(), rows))
                running[-1][0].start_async(inputs, share_inputs=True)
            while running:
                self._finish(*running.popleft(), states)
        finally:  # after an error, each request must be free for later batches
            while running:
                request = running.popleft()[0]
                with suppress(RuntimeError):  # the first error is raised
                    request.wait()
                self._idle.put(request)

    def _finish(
        self,
        request: Any,
        rows: slice,
        states: Sequence[Float32[np.ndarray, "rows hidden"]],
    ) -> None:
        """Wait for a part, and take its results."""
        try:
            request.wait()
            for number, state in enumerate(states):
                state[rows] = request.get_output_tensor(number).data
        finally:
            self._idle.put(request)


def check_precision(compiled: Any, asked: str) -> None:
    """Raise SettingsError if OpenVINO has compiled a model for another precision."""
    taken = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    if taken != asked:
        raise SettingsError(
            f"OpenVINO computes in {taken} here, not in {asked}; use --precision fp32"
        )


class Variant(NamedTuple):
    """What a model is compiled for."""

    layers: tuple[int, ...]  # whose states it gives
    is_mixed: bool  # whether it computes several sequences, side by side, or one with all threads
    is_summarizing: bool  # whether it gives the states of each [CLS] only


STARTED = {"_compiled", "_lock"}  # what has threads
STARTED_ENGINES: WeakSet[OpenVinoEngine] = WeakSet()


class OpenVinoEngine(Engine):
    """Runs an encoder in OpenVINO on a CPU, in float32, bf16, or with integer matrices.

    Args:
        weights: those of the model, in float32 and writable; their memory is used.
        architecture: the class whose head gives `logits`.
        words: the word embeddings, if they are to be looked up in their file; `weights` has them
            too, and is kept without them unless a head scores all words.
    """

    name = "openvino"

    def __init__(
        self,
        config: BertConfig,
        weights: Weights,
        architecture: str,
        layers: Iterable[int] = (-1,),
        precision: Precision = "fp32",
        *,
        words: StoredRows | None = None,
    ) -> None:
        if not config.is_bidirectional:
            raise SettingsError("the engine openvino supports only bidirectional models; use torch")
        self.config, self.architecture = config, architecture
        scores_all = "masked_lm.bias" in weights
        self.weights = {name: weights[name] for name in weights if scores_all or name != WORDS}
        in_file = None if scores_all else words
        self.words = in_file or StoredRows(weights[WORDS], ElementType.F32)
        self.precision = precision
        self.layers = resolve_layers(layers, config.num_hidden_layers)
        self.has_pooler = POOLER in weights
        self._heads = NumpyGraph(config, self.weights, config.find_head(architecture) or BERT_HEAD)
        self._parts = self._heads.parts
        self._start()

    def _start(self) -> None:
        """Prepare to compute in this process."""
        self.num_threads = count_threads()
        self.tokens_per_batch = PART_TOKENS * PARTS_PER_THREAD * self.num_threads
        self._compiled: dict[Variant, CompiledModel] = {}
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs, also in another process; it compiles models of its own."""
        return {name: value for name, value in vars(self).items() if name not in STARTED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take what `__getstate__` gave."""
        vars(self).update(state)
        self._start()

    def __call__(self, ids: PackedIds) -> list[Float32[np.ndarray, "tokens hidden"]]:
        """As in `Engine`."""
        given = tuple(dict.fromkeys(self.layers))  # the graph outputs each layer once
        states = dict(zip(given, self.compute(ids, given), strict=True))
        return [states[layer] for layer in self.layers]

    @np.errstate(over="ignore", invalid="ignore")  # callers check what comes out
    def pool(
        self, tokens: Float32[np.ndarray, "tokens hidden"], ids: PackedIds
    ) -> Float32[np.ndarray, "sequences hidden"]:
        """As in `Engine`."""
        return write_pooler(self._heads, tokens[ids.first_tokens])

    @np.errstate(over="ignore", invalid="ignore")  # callers check what comes out
    def logits(self, ids: PackedIds) -> Float32[np.ndarray, "rows ..."]:
        """As in `Engine`."""
        if self.architecture in SUMMARY_SCORES:
            return SUMMARY_SCORES[self.architecture](self._heads, self._summarize(ids))
        states = self(ids)
        joined = states[0] if len(states) == 1 else np.concatenate(states, axis=1)
        return TOKEN_SCORES[self.architecture](self._heads, joined, ids)

    def score_words(
        self, ids: PackedIds, places: Int64[np.ndarray, " chosen"]
    ) -> Iterator[Float32[np.ndarray, "rows vocabulary"]]:
        """As in `Engine`."""
        states = self(ids)[-1][places]
        for start in range(0, len(states), ROWS_AT_A_TIME):
            yield score_words(self._heads, states[start : start + ROWS_AT_A_TIME])

    @np.errstate(over="ignore", invalid="ignore")  # callers check what comes out
    def score_pairs(self, ids: PackedIds) -> Float32[np.ndarray, "sequences 2"]:
        """As in `Engine`."""
        return score_pairs(self._heads, self._summarize(ids))

    def _summarize(self, ids: PackedIds) -> Float32[np.ndarray, "sequences hidden"]:
        """Return the final state of each sequence's [CLS], or the mean of its tokens' states.

        For [CLS], the last layer skips the other tokens.
        """
        layers = (self.config.num_hidden_layers,)
        if self._heads.head.pooling == "mean":
            return mean_tokens(self.compute(ids, layers)[0], ids)
        return self.compute(ids, layers, is_summarizing=True)[0]

    def compute(
        self, ids: PackedIds, layers: tuple[int, ...], *, is_summarizing: bool = False
    ) -> list[Float32[np.ndarray, "rows hidden"]]:
        """Compute the states of some layers: of each token, or of each sequence's [CLS]."""
        is_mixed = len(ids.lengths) > 1 or self.num_threads == 1
        variant = Variant(layers, is_mixed, is_summarizing)
        num_rows = len(ids.lengths) if is_summarizing else ids.num_tokens
        states = [np.empty((num_rows, self.config.hidden_size), np.float32) for _ in layers]
        self._find_compiled(variant).run(self._list_parts(ids, variant), states)
        return states

    def _list_parts(self, ids: PackedIds, variant: Variant) -> Iterator[Part]:
        """Yield the inputs of each part, and the rows of the batch's states that it computes."""
        num_parts = self.num_threads if variant.is_mixed else 1
        for start, end, tokens in cut_parts(ids.lengths, num_parts):
            layout = lay_out(ids.lengths[start:end])
            chosen = layout if variant.is_mixed else layout[:1]
            if variant.is_summarizing:
                chosen.append((ids.first_tokens[start:end] - tokens.start).astype(np.int32))
            chosen += self._turn(max(ids.lengths[start:end]))
            rows = slice(start, end) if variant.is_summarizing else tokens
            yield [self._embed(ids, tokens), *chosen], rows

    @np.errstate(over="ignore", invalid="ignore")  # `check_finite` tells
    def _embed(self, ids: PackedIds, tokens: slice) -> Float32[np.ndarray, "tokens hidden"]:
        """Return the sum of the embeddings of some tokens."""
        embedded: Float32[np.ndarray, "tokens hidden"]
        embedded, parts = self.words[ids.input_ids[tokens]], self._parts
        if parts.has_positions:
            positions = ids.position_ids[tokens] + parts.position_offset
            embedded += self.weights["encoder.embeddings.position.weight"][positions]
        if self.config.type_vocab_size:
            segments = ids.token_type_ids[tokens]
            embedded += self.weights["encoder.embeddings.token_type.weight"][segments]
        return embedded

    def _turn(self, longest: int) -> list[Float32[np.ndarray, "2 longest features"]]:
        """Return the waves of each base of rotary positions."""
        size = self.config.hidden_size // self.config.num_attention_heads
        bases = dict.fromkeys(self._parts.rotary_bases)
        return [rotary_waves(base, size, longest) for base in bases]

    def _find_compiled(self, variant: Variant) -> CompiledModel:
        from bertkit.inference.graphs.openvino_graph import OpenVinoGraph

        with self._lock:
            if variant not in self._compiled:
                STARTED_ENGINES.add(self)
                graph = OpenVinoGraph(
                    self.config,
                    self.weights,
                    is_mixed=variant.is_mixed,
                    is_int8=self.precision == "int8",
                    is_summarizing=variant.is_summarizing,
                )
                model, num_streams = graph.write(variant.layers), self.num_threads
                self._compiled[variant] = CompiledModel(
                    model, self.precision, self.num_threads, num_streams if variant.is_mixed else 1
                )
            return self._compiled[variant]

    def list_weights(self) -> Weights:
        """Return all weights of the model in float32, the word embeddings among them."""
        return {**self.weights, WORDS: self.words.read()}

    def leave_models(self) -> object:
        """Compile models again, and return those that aren't used any more."""
        left = self._compiled
        self._start()
        return left


def lay_out(lengths: Sequence[int]) -> list[Any]:
    """Return the inputs `mask`, `rows` and `places` of a mixed graph."""
    sizes = np.array(lengths)
    is_token = np.arange(sizes.max()) < sizes[:, None]
    rows = np.zeros(is_token.shape, np.int32)
    rows[is_token] = np.arange(sizes.sum(), dtype=np.int32)
    places = np.flatnonzero(is_token).astype(np.int32)
    mask = np.where(is_token, np.float32(0.0), MASKED_SCORE)
    return [mask[:, None, None, :], rows, places]


def cut_parts(lengths: Sequence[int], num_threads: int) -> Iterator[tuple[int, int, slice]]:
    """Yield start and end of each part of a batch, in sequences, and its tokens.

    A part ends before it grows too large. A small batch is split about evenly among the threads.
    """
    limit = min(PART_TOKENS, math.ceil(sum(lengths) / num_threads))
    start, first, num_tokens = 0, 0, 0
    for index, length in enumerate(lengths):
        if index > start and num_tokens + length > limit:
            yield start, index, slice(first, first + num_tokens)
            start, first, num_tokens = index, first + num_tokens, 0
        num_tokens += length
    yield start, len(lengths), slice(first, first + num_tokens)


def count_threads() -> int:
    """Return `OMP_NUM_THREADS`, else the number of cores that this process may use."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() and int(asked) else count_cores()


@cache
def load_core() -> Any:
    """Return OpenVINO's runtime, one for this process."""
    from openvino import Core

    return Core()


def leave_models() -> None:
    """In the child of a fork, have the engines compile again.

    The models of the parent lack their threads and would wait for them even when they are deleted,
    so they are put into a cycle of references that nothing ends: garbage collection doesn't look
    into an array of NumPy.
    """
    left = [engine.leave_models() for engine in STARTED_ENGINES]
    STARTED_ENGINES.clear()
    if load_core.cache_info().currsize:
        kept = np.empty(3, dtype=object)
        kept[:] = kept, load_core(), left
        load_core.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=leave_models)
