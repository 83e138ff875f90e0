"""The report of `bertkit devices`: processor, GPUs, and the speed of matrix products on each."""

import platform
from dataclasses import dataclass
from pathlib import Path

import torch

from bertkit.hardware.device import (
    choose_device,
    choose_precision,
    is_bf16_faster,
    list_cpu_flags,
    measure_peak,
)

UNKNOWN = "unknown processor"


@dataclass(frozen=True)
class DeviceReport:
    """A device and what `--device auto` and `--precision auto` take from it.

    Attributes:
        device: its name for `--device`.
        model: the product's name.
        num_threads: threads that compute together; 0 for a GPU.
        features: instruction sets for products of bf16 and int8, or a GPU's compute capability.
        operations_per_second: of matrix products, by precision, measured.
        inference_precision: the precision of `--precision auto` for embeddings and predictions; on
            a CPU with fast bf16 each model is also timed in both precisions.
        training_precision: the precision of `--precision auto` for training.
        is_default: whether `--device auto` takes it.
    """

    device: str
    model: str
    num_threads: int
    features: tuple[str, ...]
    operations_per_second: dict[str, float]
    inference_precision: str
    training_precision: str
    is_default: bool


def describe_devices() -> list[DeviceReport]:
    """Measure the CPU and every GPU; takes about a second for each."""
    names = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    return [describe_device(torch.device(name)) for name in names]


def describe_device(device: torch.device) -> DeviceReport:
    """Measure a device."""
    is_cpu = device.type == "cpu"
    training = choose_precision("auto", device)
    return DeviceReport(
        device=str(device),
        model=read_cpu_model() if is_cpu else torch.cuda.get_device_name(device),
        num_threads=torch.get_num_threads() if is_cpu else 0,
        features=list_cpu_flags() if is_cpu else (_find_capability(device),),
        operations_per_second={
            "fp32": measure_peak(device, "fp32"),
            "bf16": measure_peak(device, "bf16"),
        },
        inference_precision=("bf16" if is_bf16_faster() else "fp32") if is_cpu else training,
        training_precision=training,
        is_default=choose_device("auto").type == device.type and not device.index,
    )


def _find_capability(device: torch.device) -> str:
    return "compute capability {}.{}".format(*torch.cuda.get_device_capability(device))


def read_cpu_model() -> str:
    """Return the processor's name."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or UNKNOWN
    name = text.partition("model name")[2].partition("\n")[0].lstrip("\t :").strip()
    return name or platform.processor() or UNKNOWN
