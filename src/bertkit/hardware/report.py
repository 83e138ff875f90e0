"""The report of `bertkit devices`: processor, GPUs, and the speed of matrix products on each."""

from dataclasses import dataclass

import torch

from bertkit.hardware.device import choose_device, choose_precision, measure_peak
from bertkit.hardware.processor import read_processor

LEAST_GAIN = 1.5  # of a product; a model gains less, since it also does other things


@dataclass(frozen=True)
class DeviceReport:
    """A device and what `--device auto` and `--precision auto` take from it.

    Attributes:
        device: its name for `--device`.
        model: the product's name.
        num_threads: threads that compute together; 0 for a GPU.
        features: instruction sets for products of bf16 and int8, or a GPU's compute capability.
        operations_per_second: of matrix products, by precision, measured.
        inference_precision: what `--precision auto` takes for embeddings and predictions.
        training_precision: what it takes for training.
        is_default: whether `--device auto` takes it.
        doubt: why `--precision auto` may be wrong here, by what was measured; empty if it is right.
    """

    device: str
    model: str
    num_threads: int
    features: tuple[str, ...]
    operations_per_second: dict[str, float]
    inference_precision: str
    training_precision: str
    is_default: bool
    doubt: str = ""


def describe_devices() -> list[DeviceReport]:
    """Measure the CPU and every GPU; takes about two seconds for each."""
    names = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    return [describe_device(torch.device(name)) for name in names]


def describe_device(device: torch.device) -> DeviceReport:
    """Measure a device."""
    is_cpu = device.type == "cpu"
    rates = {"fp32": measure_peak(device, "fp32"), "bf16": measure_peak(device, "bf16")}
    inference = choose_precision("auto", device, "inference")
    return DeviceReport(
        device=str(device),
        model=read_processor().name if is_cpu else torch.cuda.get_device_name(device),
        num_threads=torch.get_num_threads() if is_cpu else 0,
        features=read_processor().flags if is_cpu else (_find_capability(device),),
        operations_per_second=rates,
        inference_precision=inference,
        training_precision=choose_precision("auto", device, "training"),
        is_default=choose_device("auto").type == device.type and not device.index,
        doubt=doubt_choice(inference, rates["bf16"] / rates["fp32"]),
    )


def doubt_choice(inference: str, gain: float) -> str:
    """Say if the measured gain of bf16 contradicts what `--precision auto` takes.

    Args:
        inference: what it takes for inference.
        gain: the speed of matrix products in bf16, divided by that in float32.
    """
    if inference == "bf16" and gain < 1.0:
        other = "fp32"
    elif inference == "fp32" and gain > LEAST_GAIN:
        other = "bf16"
    else:
        return ""
    return (
        f"auto takes {inference}, but products measure {gain:.1f} times as fast in bf16; if that"
        f" repeats on an idle machine, use --precision {other} and report it"
    )


def _find_capability(device: torch.device) -> str:
    return "compute capability {}.{}".format(*torch.cuda.get_device_capability(device))
