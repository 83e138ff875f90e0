"""What `bertkit devices` tells of the processor and of GPUs, measured where there is PyTorch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertkit.base.extras import describe_missing, has_package
from bertkit.base.parts import count_cores
from bertkit.base.progress import announce
from bertkit.training.processor import (
    choose_cpu_precision,
    find_bf16_gain,
    has_driver,
    has_gpu,
    read_processor,
)

if TYPE_CHECKING:
    import torch

WIDEST = 1 << 16  # wider than any model
LEAST_GAIN = 1.5  # of a product; a model gains less, since it also does other things


@dataclass(frozen=True)
class DeviceReport:
    """A device and what `--device auto` and `--precision auto` take from it."""

    device: str  # as `--device` takes it
    model: str  # the product's name
    num_threads: int  # that compute together; 0 for a GPU
    features: tuple[str, ...]  # for products of bf16 and int8, or a GPU's compute capability
    operations_per_second: dict[str, float]  # of matrix products, measured; empty without PyTorch
    inference_precision: str  # what `--precision auto` takes
    training_precision: str  # of the widest models
    is_default: bool  # whether `--device auto` takes it
    training_size: int = 0  # hidden size below which models train in float32
    doubt: str = ""  # why `auto` may be wrong here; empty if it is right


def describe_devices() -> list[DeviceReport]:
    """Measure the CPU and every GPU; takes about two seconds for each."""
    if not has_package("torch"):
        if has_driver():
            announce(describe_missing("torch", "computing on a GPU"))
        return [describe_processor(count_cores(), {})]
    import torch

    from bertkit.training.device import measure_peak

    cpu = torch.device("cpu")
    rates = {"fp32": measure_peak(cpu, "fp32"), "bf16": measure_peak(cpu, "bf16")}
    gpus = (torch.device(f"cuda:{index}") for index in range(torch.cuda.device_count()))
    return [describe_processor(torch.get_num_threads(), rates), *map(describe_gpu, gpus)]


def describe_processor(num_threads: int, rates: dict[str, float]) -> DeviceReport:
    """Describe the processor, given its operations per second by precision, if measured."""
    inference, gain = choose_cpu_precision("auto", "inference"), find_bf16_gain()
    return DeviceReport(
        device="cpu",
        model=read_processor().name,
        num_threads=num_threads,
        features=read_processor().flags,
        operations_per_second=rates,
        inference_precision=inference,
        training_precision=choose_cpu_precision("auto", "training", WIDEST),
        training_size=0 if gain is None else gain.least_training_size,
        is_default=not has_gpu(),
        doubt=doubt_choice(inference, rates["bf16"] / rates["fp32"]) if rates else "",
    )


def describe_gpu(device: "torch.device") -> DeviceReport:
    """Measure a GPU."""
    import torch

    from bertkit.training.device import choose_precision, measure_peak

    rates = {"fp32": measure_peak(device, "fp32"), "bf16": measure_peak(device, "bf16")}
    inference = choose_precision("auto", device, "inference")
    return DeviceReport(
        device=str(device),
        model=torch.cuda.get_device_name(device),
        num_threads=0,
        features=("compute capability {}.{}".format(*torch.cuda.get_device_capability(device)),),
        operations_per_second=rates,
        inference_precision=inference,
        training_precision=choose_precision("auto", device, "training"),
        is_default=not device.index,
        doubt=doubt_choice(inference, rates["bf16"] / rates["fp32"]),
    )


def doubt_choice(inference: str, gain: float) -> str:
    """Say if the measured speed of bf16 over float32 contradicts what `--precision auto` takes."""
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
