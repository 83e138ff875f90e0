"""Choice of the engine that computes a model: device, precision and runtime.

OpenVINO is the engine of CPUs. PyTorch is that of GPUs, and of models that OpenVINO doesn't
compute; only then is it loaded.
"""

import logging
from collections.abc import Iterable

from bertkit.base.errors import SettingsError
from bertkit.base.extras import require_torch
from bertkit.base.progress import announce
from bertkit.inference.engines.engine import Engine
from bertkit.inference.engines.openvino_engine import OpenVinoEngine
from bertkit.inference.settings import EngineSettings, Precision, PrecisionName
from bertkit.models.bert.config import BertConfig
from bertkit.models.open_model import OpenModel
from bertkit.training.processor import (
    check_device_name,
    choose_cpu_precision,
    has_gpu,
    has_native_bf16,
    has_native_int8,
)

logger = logging.getLogger(__name__)


def open_engine(
    opened: OpenModel,
    loading: EngineSettings,
    architecture: str,
    layers: Iterable[int] = (-1,),
) -> Engine:
    """Load a model's weights into an engine.

    The device, the precision and the engine depend on the machine, on the model's config and on the
    settings, never on a clock. auto never takes int8.

    Args:
        opened: the model.
        loading: what the user asked for.
        architecture: the class of `ARCHITECTURES` whose heads the caller uses.
        layers: those whose hidden states are computed.

    Raises:
        SettingsError: the settings contradict each other or the model.
        CheckpointError: the weights don't fit the class.
        MissingExtraError: torch is needed and isn't installed.
    """
    if reason := find_torch_reason(loading, opened.config):
        if loading.precision == "int8":
            raise SettingsError("int8 is for bidirectional models on a CPU, in the engine openvino")
        require_torch(reason)
        from bertkit.inference.engines.torch_engine import open_torch

        return open_torch(opened, loading.device, loading.precision, architecture, layers)
    precision = choose_precision(loading.precision)
    logger.info("computing on cpu in %s, engine openvino", precision)
    weights = opened.read_arrays(architecture)
    words = opened.read_words()
    return OpenVinoEngine(opened.config, weights, architecture, layers, precision, words=words)


def find_torch_reason(loading: EngineSettings, config: BertConfig) -> str | None:
    """Return what needs PyTorch, as the subject of a sentence; None if OpenVINO computes the model.

    Raises:
        SettingsError: there is no such device, or the engine openvino can't compute the model.
    """
    check_device_name(loading.device)
    if loading.engine == "openvino":
        if loading.device not in {"auto", "cpu"} or not config.is_bidirectional:
            raise SettingsError(
                "the engine openvino supports only bidirectional models on a CPU; use torch"
            )
        return None
    if loading.engine == "torch":
        return "the engine torch"
    if loading.device not in {"auto", "cpu"}:
        return f"the device {loading.device}"
    if not config.is_bidirectional:
        return "a model that reads left to right"
    if loading.precision == "bf16" and not has_native_bf16():
        return "bf16 on a processor without instructions for it"
    return "a GPU" if loading.device == "auto" and has_gpu() else None


def choose_precision(name: PrecisionName) -> Precision:
    """Return the precision in which OpenVINO computes."""
    if name == "int8":
        if not has_native_int8():
            announce(
                "WARNING: this processor has no instructions for products of int8, which are"
                " what makes it faster than fp32"
            )
        return name
    if name == "bf16" and not has_native_bf16():
        raise SettingsError(
            "the engine openvino has bf16 only on processors that have it, with amx_bf16 or"
            " avx512_bf16; use fp32, or the engine torch, which emulates it"
        )
    return choose_cpu_precision(name, "inference")
