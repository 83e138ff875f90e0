"""What the processor is, what bf16 was measured to give on its kind, and whether there is a GPU.

`--precision auto` follows this table and no clock, so the same command gives the same answer.
"""

import ctypes
import platform
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from bertkit.base.errors import SettingsError
from bertkit.base.extras import has_package
from bertkit.base.progress import announce

Work = Literal["inference", "training"]

CPU_INFO = Path("/proc/cpuinfo")
# Instruction sets for products of bf16 and int8, as /proc/cpuinfo names them.
BF16_FLAGS = ("amx_bf16", "avx512_bf16")
INT8_FLAGS = ("amx_int8", "avx512_vnni", "avx_vnni")
MATRIX_FLAGS = (*BF16_FLAGS, *INT8_FLAGS)
UNKNOWN = "unknown processor"
DEVICE_NAMES = re.compile(r"auto|cpu|cuda(:(0|[1-9][0-9]?))?")


@dataclass(frozen=True)
class Processor:
    """The processor of this machine."""

    vendor: str  # such as GenuineIntel or AuthenticAMD; empty if unknown
    name: str
    flags: tuple[str, ...]  # those of `MATRIX_FLAGS` that it has


@dataclass(frozen=True)
class Bf16Gain:
    """How many times as fast as float32 bf16 was measured on a kind of processor, at least."""

    flag: str
    vendor: str  # empty for any
    inference: float  # for encoders
    # for steps of models of a hidden size, the narrowest first; empty if not measured
    training: tuple[tuple[int, float], ...]

    def trains_faster(self, hidden_size: int | None) -> bool:
        """Whether steps are faster in bf16, by the widest measured model that isn't wider.

        A model narrower than all, or of an unknown size, counts as the narrowest.
        """
        gain = 0.0
        for number, (measured_size, measured) in enumerate(self.training):
            if not number or measured_size <= (hidden_size or 0):
                gain = measured
        return gain > 1.0

    @property
    def least_training_size(self) -> int:
        """The hidden size from which on steps are faster in bf16; 0 if the size doesn't matter."""
        sizes = [size for size, gain in self.training if gain > 1.0]
        return sizes[0] if sizes and sizes[0] != self.training[0][0] else 0


# The first row that fits counts; a processor without one computes in float32. docs/performance.md
# has the measurements.
BF16_GAINS = (
    Bf16Gain("amx_bf16", "", inference=3.0, training=((128, 0.94), (256, 1.32), (768, 2.5))),
    Bf16Gain(
        "avx512_bf16", "AuthenticAMD", inference=1.5, training=((128, 1.9), (256, 1.4))
    ),  # Zen 4
    Bf16Gain("avx512_bf16", "GenuineIntel", inference=0.5, training=()),  # Xeon without AMX
)


@cache
def read_processor() -> Processor:
    """Read the processor's kind; on systems without /proc/cpuinfo, flags are unknown."""
    try:
        text = CPU_INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    words = set(read_field(text, "flags").split())
    return Processor(
        vendor=read_field(text, "vendor_id"),
        name=read_field(text, "model name") or platform.processor() or UNKNOWN,
        flags=tuple(flag for flag in MATRIX_FLAGS if flag in words),
    )


def read_field(text: str, name: str) -> str:
    """Return the first value of a field of /proc/cpuinfo; empty if there is none."""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def find_bf16_gain() -> Bf16Gain | None:
    """Return the row of `BF16_GAINS` for this processor; None if its kind wasn't measured."""
    processor = read_processor()
    for row in BF16_GAINS:
        if row.flag in processor.flags and row.vendor in ("", processor.vendor):
            return row
    return None


def choose_cpu_precision(
    name: Literal["auto", "fp32", "bf16"], work: Work, hidden_size: int | None = None
) -> Literal["fp32", "bf16"]:
    """Return the precision for a `--precision` flag on this processor.

    auto takes bf16 where it was measured to be faster (`BF16_GAINS`), in training for models of
    that hidden size.
    """
    if name != "auto":
        if name == "bf16" and not has_native_bf16():
            announce("WARNING: this processor only emulates bf16, which is slow; fp32 is faster")
        return name
    gain = find_bf16_gain()
    if gain is None:
        return "fp32"
    is_faster = gain.inference > 1.0 if work == "inference" else gain.trains_faster(hidden_size)
    return "bf16" if is_faster else "fp32"


def has_native_bf16() -> bool:
    """Whether the processor has instructions for bf16; others emulate it, many times slower."""
    return bool(set(BF16_FLAGS) & set(read_processor().flags))


def has_native_int8() -> bool:
    """Whether the processor has instructions for products of int8 that can't saturate."""
    return bool(set(INT8_FLAGS) & set(read_processor().flags))


def check_device_name(name: str) -> None:
    """Raise SettingsError for what `--device` doesn't take."""
    if not DEVICE_NAMES.fullmatch(name):
        raise SettingsError(f"device must be auto, cpu, cuda or cuda:N, got {name!r}")


@cache
def has_driver() -> bool:
    """Whether NVIDIA's driver is installed."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


@cache
def has_gpu() -> bool:
    """Whether PyTorch can use a GPU; without NVIDIA's driver, it isn't asked or loaded."""
    if not has_driver() or not has_package("torch"):
        return False
    import torch

    return torch.cuda.is_available()
