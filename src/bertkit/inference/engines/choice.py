"""Choice of the engine that runs a model."""

from collections.abc import Callable, Iterable
from importlib.util import find_spec

import torch

from bertkit.base.errors import SettingsError
from bertkit.inference.engines.engine import Engine, HasEncoder
from bertkit.inference.engines.names import EngineName, Precision
from bertkit.inference.engines.torch_engine import TorchEngine


def build_onnx(model: HasEncoder, layers: Iterable[int], precision: Precision) -> Engine:
    """Build the ONNX Runtime engine, for CPUs."""
    from bertkit.inference.engines.onnx_engine import OnnxEngine

    if not can_run_onnx(model, precision):
        raise SettingsError(
            "the engine onnx supports only bidirectional models on a CPU in fp32; use torch"
        )
    return OnnxEngine(model, layers)


ENGINES: dict[str, Callable[[HasEncoder, Iterable[int], Precision], Engine]] = {
    "torch": TorchEngine,
    "onnx": build_onnx,
}


def choose_engine(
    name: EngineName,
    model: HasEncoder,
    layers: Iterable[int] = (-1,),
    precision: Precision = "fp32",
) -> Engine:
    """Build an engine for a model.

    Args:
        name: auto takes the fastest that is installed and supports the model: onnx on a CPU for
            bidirectional models, else torch.
        model: the model, on its device.
        layers: layers whose hidden states are returned, as in `resolve_layers`.
        precision: of the weights and matrix products.
    """
    if name == "auto":
        name = "onnx" if can_run_onnx(model, precision) and has_onnx() else "torch"
    return ENGINES[name](model, layers, precision)


def find_device(model: HasEncoder) -> torch.device:
    """Return the device of a model."""
    return model.encoder.embeddings.word.weight.device


def can_run_onnx(model: HasEncoder, precision: Precision) -> bool:
    """Whether ONNX Runtime can run a model; its graph has no causal mask."""
    weight = model.encoder.embeddings.word.weight
    is_float32 = weight.dtype == torch.float32 and precision == "fp32"
    return weight.device.type == "cpu" and is_float32 and not model.config.is_decoder


def has_onnx() -> bool:
    """Whether `bertkit[onnx]` is installed."""
    return all(find_spec(package) for package in ("onnx", "onnxruntime"))
