"""Choice of the engine that runs a model."""

import logging
from collections.abc import Callable, Iterable
from importlib.util import find_spec

import torch

from bertkit.base.errors import MissingExtraError, SettingsError
from bertkit.base.extras import describe_install
from bertkit.inference.engines.engine import Engine
from bertkit.inference.engines.torch_engine import HasEncoder, TorchEngine, find_device
from bertkit.inference.settings import EngineName, Precision, PrecisionName
from bertkit.training.device import choose_precision

logger = logging.getLogger(__name__)


def build_onnx(model: HasEncoder, layers: Iterable[int], precision: Precision) -> Engine:
    """Build the ONNX Runtime engine, for CPUs."""
    from bertkit.inference.engines.onnx_engine import OnnxEngine

    if precision == "bf16" or not can_run_onnx(model):
        raise SettingsError(
            "the engine onnx supports only bidirectional models on a CPU in fp32 or int8; use torch"
        )
    if not has_onnx():  # importing ONNX Runtime would tell, and start a thread before a fork
        raise MissingExtraError(f"the engine onnx isn't installed; {describe_install('onnx')}")
    return OnnxEngine(model, layers, precision)


def build_torch(model: HasEncoder, layers: Iterable[int], precision: Precision) -> Engine:
    """Build the PyTorch engine."""
    if precision == "int8":
        raise SettingsError(
            "int8 is for bidirectional models with float32 weights on a CPU, in the engine onnx,"
            f" which needs the extra onnx: {describe_install('onnx')}"
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

    auto takes the fastest engine that is installed and supports the model and the precision.

    The precision depends on the device, on the model's weights and on what was asked for, never on
    a clock. auto takes bf16 where `choose_precision` does; never int8. The engine onnx has no bf16,
    and weights that the caller has cast stay as they are.
    """
    is_cast = model.encoder.embeddings.word.weight.dtype != torch.float32
    kind: Precision
    if precision == "int8":
        kind = "int8"
    elif precision == "auto" and (name == "onnx" or is_cast):
        kind = "fp32"
    else:
        kind = choose_precision(precision, find_device(model), "inference")
    if name == "auto":
        is_onnx = kind != "bf16" and can_run_onnx(model) and has_onnx()
        name = "onnx" if is_onnx else "torch"
    engine = ENGINES[name](model, tuple(layers), kind)
    logger.info("computing on %s in %s, engine %s", find_device(model), kind, name)
    return engine


def can_run_onnx(model: HasEncoder) -> bool:
    """Whether ONNX Runtime can run a model; its graph has no mask of later tokens."""
    weight = model.encoder.embeddings.word.weight
    is_float32 = weight.dtype == torch.float32
    return weight.device.type == "cpu" and is_float32 and model.config.is_bidirectional


def has_onnx() -> bool:
    """Whether the extra `onnx` is installed."""
    specs = [find_spec(package) for package in ("onnx", "onnxruntime")]
    return all(spec and spec.origin for spec in specs)  # a mere folder of the name has no origin
