"""Keeping memory that tensors have given back, instead of returning it to the system each time.

The C library hands a large block back to the system as soon as it is free, and the next tensor gets
fresh pages, which the system has to find and clear: on a CPU a tenth to a quarter of a step. A
training step asks for the same blocks again and again, so they are kept.

Source: the manual page mallopt(3) of the GNU C library.
"""

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
NEVER_TRIM, NO_MAPPED_BLOCKS = -1, 0


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
