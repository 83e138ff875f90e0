"""Choice of device and precision, mixed precision, and the peak speed of matrix products."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Literal

import torch

from bertkit.base.errors import SettingsError

PEAK_SIZES = {"cpu": (512, 1024, 1536), "cuda": (4096, 8192)}  # precision decides which is fastest
QUICK_SIZES = (1024,)
PEAK_TRIALS = 6
# Instruction sets of processors for products of bf16 and int8, as /proc/cpuinfo names them.
BF16_FLAGS = ("amx_bf16", "avx512_bf16")
INT8_FLAGS = ("amx_int8", "avx512_vnni", "avx_vnni")
MATRIX_FLAGS = (*BF16_FLAGS, *INT8_FLAGS)
LEAST_GAIN = 1.5  # of a product; a model gains less, since it also does other things


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
    name: Literal["auto", "fp32", "bf16"], device: torch.device
) -> Literal["fp32", "bf16"]:
    """Return the precision for a `--precision` flag of a training on a device.

    auto takes bf16 on GPUs from Ampere on; earlier ones only emulate it, although
    `torch.cuda.is_bf16_supported` returns True.
    """
    if name != "auto":
        return name
    is_ampere = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
    return "bf16" if is_ampere else "fp32"


@cache
def is_bf16_faster() -> bool:
    """Whether the CPU multiplies matrices much faster in bf16 than in float32.

    It must have instructions for it, and be faster when measured, which they don't ensure.
    """
    if not set(BF16_FLAGS) & set(list_cpu_flags()):
        return False
    device = torch.device("cpu")
    bf16, fp32 = (measure_peak(device, one, sizes=QUICK_SIZES) for one in ("bf16", "fp32"))
    return bf16 > LEAST_GAIN * fp32


def list_cpu_flags() -> tuple[str, ...]:
    """Return the instruction sets of `MATRIX_FLAGS` that the CPU has; none where unknown."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    words = set(text.partition("flags")[2].partition("\n")[0].split())
    return tuple(flag for flag in MATRIX_FLAGS if flag in words)


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

    Args:
        device: the device.
        precision: of the matrices.
        sizes: rows of the matrices; by default sizes that suit the device.
    """
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    generator = torch.Generator(device).manual_seed(0)
    rates = []
    for size in sizes or PEAK_SIZES[device.type]:
        # Random numbers, because a GPU multiplies constant matrices faster than a model's.
        matrix = torch.randn(size, size, device=device, generator=generator).to(dtype)
        for _ in range(PEAK_TRIALS):
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
