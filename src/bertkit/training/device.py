"""Choose device and precision, and prepare memory for training.

On a CPU the C library returns a large block to the system as soon as it is freed, and the next
tensor gets fresh pages, which the system has to find and clear. A step allocates the same blocks
again and again, so freed blocks are kept.

oneDNN compiles a kernel for each shape of a matrix product, and PyTorch caches 1,024 of them twice,
in oneDNN's cache and in its own, about a megabyte each. A packed batch has a different number of
tokens in every step, so kernels of earlier steps are hardly ever reused. Within a step, all layers
share about twenty kernels.

Source: the manual page mallopt(3) of the GNU C library; "Primitive Cache" in oneDNN's developer
guide.
"""

import ctypes
import os
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

from bertkit.base.errors import SettingsError
from bertkit.base.progress import Launch
from bertkit.training.processor import Work, check_device_name, choose_cpu_precision

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
NEVER_TRIM, NO_MAPPED_BLOCKS = -1, 0
# Both caches read their size from these environment variables when they are first used.
KERNEL_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
NUM_KEPT_KERNELS = 64


def prepare_memory(device: torch.device) -> None:
    """Apply the memory settings to this process, if it computes on a CPU.

    Call it before the first step.
    """
    if device.type == "cpu":
        keep_freed_memory()
        keep_few_kernels()


def keep_freed_memory() -> bool:
    """Make this process's allocator keep freed memory; return False if the C library can't."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_MAX, NO_MAPPED_BLOCKS) and mallopt(M_TRIM_THRESHOLD, NEVER_TRIM))


def keep_few_kernels() -> None:
    """Limit both kernel caches, unless the environment already sets their size.

    This has no effect in a process that has already multiplied matrices with oneDNN.
    """
    for name in KERNEL_CACHES:
        os.environ.setdefault(name, str(NUM_KEPT_KERNELS))


PEAK_SIZES = {"cpu": (512, 1024, 1536), "cuda": (4096, 8192)}  # precision decides which is fastest
PEAK_TRIALS = 6
PEAK_SECONDS = 1.0  # enough to measure; emulated bf16 would take a minute for all trials


def choose_device(name: str) -> torch.device:
    """Return the device for a `--device` flag."""
    check_device_name(name)
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and (launch := Launch.read()).num_ranks > 1:
        name = f"cuda:{launch.local_rank}"
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise SettingsError(f"there is no {name} here; {torch.cuda.device_count()} CUDA devices")
    return device


def choose_precision(
    name: Literal["auto", "fp32", "bf16"],
    device: torch.device,
    work: Work,
    hidden_size: int | None = None,
) -> Literal["fp32", "bf16"]:
    """Return the precision for a `--precision` flag: a function of the device and the model's size.

    On a CPU it is that of `choose_cpu_precision`. On GPUs auto takes bf16 from Ampere on; earlier
    ones only emulate it, although `torch.cuda.is_bf16_supported` returns True.
    """
    if device.type == "cpu":
        return choose_cpu_precision(name, work, hidden_size)
    if name != "auto":
        return name
    return "bf16" if torch.cuda.get_device_capability(device) >= (8, 0) else "fp32"


def mixed_precision(
    device: torch.device, precision: Literal["fp32", "bf16"]
) -> AbstractContextManager[None]:
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

    Takes about a second at most. `sizes` are the rows of the matrices; by default they suit the
    device.
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
