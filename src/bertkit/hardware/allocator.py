"""What a training process keeps in memory between steps: freed blocks, and a few kernels.

The C library hands a large block back to the system as soon as it is free, and the next tensor gets
fresh pages, which the system has to find and clear: on a CPU a tenth to a quarter of a step. A
training step asks for the same blocks again and again, so they are kept.

oneDNN compiles a kernel for each shape of a matrix product, and PyTorch keeps 1,024 of them twice,
in a cache of oneDNN's and in one of its own, about a megabyte each. A packed batch has another
number of tokens in every step, so kernels of earlier steps are hardly ever asked for again. Within
a step all layers share theirs, which are some twenty.

Source: the manual page mallopt(3) of the GNU C library; "Primitive Cache" in oneDNN's developer
guide.
"""

import ctypes
import os
import sys

import torch

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
NEVER_TRIM, NO_MAPPED_BLOCKS = -1, 0
# Both caches read their size from these when they are first used.
KERNEL_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
NUM_KEPT_KERNELS = 64


def prepare_memory(device: torch.device) -> None:
    """Set up what this process keeps in memory, before it computes its first step.

    Args:
        device: where it computes; only a CPU needs it.
    """
    if device.type == "cpu":
        keep_freed_memory()
        keep_few_kernels()


def keep_freed_memory() -> bool:
    """Tell the allocator of this process to keep what is freed.

    Returns:
        False where the C library has no such setting, and nothing changes.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_MAX, NO_MAPPED_BLOCKS) and mallopt(M_TRIM_THRESHOLD, NEVER_TRIM))


def keep_few_kernels() -> None:
    """Keep few kernels of oneDNN, unless the environment says how many.

    Nothing changes in a process that has multiplied matrices by oneDNN before.
    """
    for name in KERNEL_CACHES:
        os.environ.setdefault(name, str(NUM_KEPT_KERNELS))
