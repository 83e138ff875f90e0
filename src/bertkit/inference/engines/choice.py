"""Choice of the engine that runs a model."""

import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec

import torch

from bertkit.base.errors import SettingsError
from bertkit.hardware.device import choose_precision, is_bf16_faster
from bertkit.inference.engines.engine import Engine, HasEncoder
from bertkit.inference.engines.names import EngineName, Precision, PrecisionName
from bertkit.inference.engines.torch_engine import TorchEngine
from bertkit.nn.packing import PackedBatch

PROBE_LENGTHS = (64, 48, 32, 24, 16, 8)  # tokens of the sequences that engines are timed on
PROBE_TRIALS = 3


def build_onnx(model: HasEncoder, layers: Iterable[int], precision: Precision) -> Engine:
    """Build the ONNX Runtime engine, for CPUs."""
    from bertkit.inference.engines.onnx_engine import OnnxEngine

    if precision == "bf16" or not can_run_onnx(model):
        raise SettingsError(
            "the engine onnx supports only bidirectional models on a CPU in fp32 or int8; use torch"
        )
    return OnnxEngine(model, layers, precision)


def build_torch(model: HasEncoder, layers: Iterable[int], precision: Precision) -> Engine:
    """Build the PyTorch engine."""
    if precision == "int8":
        raise SettingsError(
            "int8 is for bidirectional models with float32 weights on a CPU, in the engine onnx,"
            " which needs `pip install 'bertkit[onnx]'`"
        )
    return TorchEngine(model, layers, precision)


ENGINES: dict[str, Callable[[HasEncoder, Iterable[int], Precision], Engine]] = {
    "torch": build_torch,
    "onnx": build_onnx,
}


def choose_engine(
    name: EngineName,
    model: HasEncoder,
    layers: Iterable[int] = (-1,),
    precision: PrecisionName = "auto",
) -> Engine:
    """Build an engine for a model.

    Args:
        name: auto takes the fastest that is installed and supports the model and the precision.
        model: the model, on its device.
        layers: layers whose hidden states are returned, as in `resolve_layers`.
        precision: of the weights and matrix products. auto takes bf16 if the device computes it
            natively and, on a CPU, a batch of the model is faster than in fp32; never int8. It is
            timed whenever this is called: name a precision for results that can be repeated.

    Raises:
        SettingsError: the engine doesn't support the model or the precision.
        MissingExtraError: the engine isn't installed.
    """
    layers = tuple(layers)
    if name == "onnx" and precision == "auto":
        precision = "fp32"
    candidates = [
        (engine, kind)
        for kind in (_list_precisions(model) if precision == "auto" else (precision,))
        for engine in (_list_engines(model, kind) if name == "auto" else (name,))
    ]
    if len(candidates) > 1:
        longest = model.config.max_position_embeddings
        engines = [ENGINES[engine](model, layers, kind) for engine, kind in candidates]
        return min(engines, key=lambda engine: time_engine(engine, longest))
    engine, kind = candidates[0]
    return ENGINES[engine](model, layers, kind)


def _list_precisions(model: HasEncoder) -> tuple[Precision, ...]:
    """List the precisions that `auto` takes or, if there are several, compares."""
    device = find_device(model)
    if model.encoder.embeddings.word.weight.dtype != torch.float32:
        return ("fp32",)  # weights that the caller has cast stay as they are
    if device.type == "cuda":
        return (choose_precision("auto", device),)
    return ("bf16", "fp32") if is_bf16_faster() else ("fp32",)


def _list_engines(model: HasEncoder, precision: Precision) -> tuple[EngineName, ...]:
    """Return the faster engine for a precision."""
    is_onnx = precision != "bf16" and can_run_onnx(model) and has_onnx()
    return ("onnx",) if is_onnx else ("torch",)


def time_engine(engine: Engine, longest: int) -> float:
    """Return the seconds that an engine takes for a small batch, the least of several trials."""
    batch = PackedBatch.from_single([[0] * min(length, longest) for length in PROBE_LENGTHS])
    engine(batch)  # prepares its kernels
    seconds = []
    for _ in range(PROBE_TRIALS):
        started = time.perf_counter()
        engine(batch)
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def find_device(model: HasEncoder) -> torch.device:
    """Return the device of a model."""
    return model.encoder.embeddings.word.weight.device


def can_run_onnx(model: HasEncoder) -> bool:
    """Whether ONNX Runtime can run a model; its graph has no causal mask."""
    weight = model.encoder.embeddings.word.weight
    is_float32 = weight.dtype == torch.float32
    return weight.device.type == "cpu" and is_float32 and not model.config.is_decoder


def has_onnx() -> bool:
    """Whether `bertkit[onnx]` is installed."""
    specs = [find_spec(package) for package in ("onnx", "onnxruntime")]
    return all(spec and spec.origin for spec in specs)  # a mere folder of the name has no origin
