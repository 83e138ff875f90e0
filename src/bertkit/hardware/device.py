"""Choice of device and precision, mixed precision, and the peak speed of matrix products."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

from bertkit.base.errors import SettingsError
from bertkit.base.progress import announce
from bertkit.hardware.processor import find_bf16_gain, has_native_bf16

PEAK_SIZES = {"cpu": (512, 1024, 1536), "cuda": (4096, 8192)}  # precision decides which is fastest
PEAK_TRIALS = 6
PEAK_SECONDS = 1.0  # enough to measure; emulated bf16 would take a minute for all trials

Work = Literal["inference", "training"]


def choose_device(name: str) -> torch.device:
    """Return the device for a `--device` flag."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise SettingsError(f"device must be auto, cpu, cuda or cuda:N, and is {name!r}") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise SettingsError(f"there is no {name} here; {torch.cuda.device_count()} CUDA devices")
    if device.type not in {"cpu", "cuda"}:
        raise SettingsError(f"device must be auto, cpu, cuda or cuda:N, and is {name!r}")
    return device


def choose_precision(
    name: Literal["auto", "fp32", "bf16"], device: torch.device, work: Work
) -> Literal["fp32", "bf16"]:
    """Return the precision for a `--precision` flag: a function of the device and of nothing else.

    auto takes bf16 on processors where it was measured to be faster (`BF16_GAINS`), and on GPUs
    from Ampere on; earlier ones only emulate it, although `torch.cuda.is_bf16_supported` returns
    True.
    """
    if name != "auto":
        if name == "bf16" and device.type == "cpu" and not has_native_bf16():
            announce("WARNING: this processor only emulates bf16, which is slow; fp32 is faster")
        return name
    if device.type == "cuda":
        return "bf16" if torch.cuda.get_device_capability(device) >= (8, 0) else "fp32"
    gain = find_bf16_gain()
    return "bf16" if gain is not None and getattr(gain, work) > 1.0 else "fp32"


def mixed_precision(
    device: torch.device, precision: Literal["fp32", "bf16"]
) -> AbstractContextManager[object]:
    """Return a context that runs matrix products in the precision; weights stay float32."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


def measure_peak(
    device: torch.device,
    precision: Literal["fp32", "bf16"],
    *,
    sizes: Sequence[int] | None = None,
) -> float:
    """Measure peak floating-point operations per second over square matrix products.

    Takes about a second at most.

    Args:
        device: the device.
        precision: of the matrices.
        sizes: rows of the matrices; by default sizes that suit the device.
    """
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    generator = torch.Generator(device).manual_seed(0)
    rates: list[float] = []
    began = time.perf_counter()
    for size in sizes or PEAK_SIZES[device.type]:
        # Random numbers, because a GPU multiplies constant matrices faster than a model's.
        matrix = torch.randn(size, size, device=device, generator=generator).to(dtype)
        for _ in range(PEAK_TRIALS):
            if rates and time.perf_counter() - began > PEAK_SECONDS:
                return max(rates)
            synchronize(device)
            started = time.perf_counter()
            torch.mm(matrix, matrix)
            synchronize(device)
            rates.append(2.0 * size**3 / (time.perf_counter() - started))
    return max(rates)


def synchronize(device: torch.device) -> None:
    """Wait until a device has finished all queued work, so that timings are correct."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
