"""Memory settings for training on a CPU: keep freed blocks, and cache fewer oneDNN kernels.

The C library returns a large block to the system as soon as it is freed, and the next tensor gets
fresh pages, which the system has to find and clear: on a CPU, that takes a tenth to a quarter of a
step. A training step allocates the same blocks again and again, so freed blocks are kept.

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

import torch

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
NEVER_TRIM, NO_MAPPED_BLOCKS = -1, 0
# Both caches read their size from these environment variables when they are first used.
KERNEL_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
NUM_KEPT_KERNELS = 64


def prepare_memory(device: torch.device) -> None:
    """Apply the memory settings to this process; call it before the first step.

    Args:
        device: where the process computes; only a CPU needs the settings.
    """
    if device.type == "cpu":
        keep_freed_memory()
        keep_few_kernels()


def keep_freed_memory() -> bool:
    """Make this process's allocator keep freed memory.

    Returns:
        False if the C library has no such setting; then nothing changes.
    """
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
