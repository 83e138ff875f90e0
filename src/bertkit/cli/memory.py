"""Running out of memory: how each library says it, and what to do about it."""

from collections.abc import Set as AbstractSet

# What torch, CUDA, C++, ONNX Runtime, the system and the loader of shared libraries say; their
# exceptions have no class in common.
PHRASES = (
    "can't allocate memory",
    "cannot allocate memory",
    "failed to allocate memory",
    "not enough memory",
    "out of memory",
    "bad_alloc",
    "failed to map segment",
)
# Flags by which a command takes less memory, those that give most first.
FLAGS = (
    "batch-size",
    "tokens-per-batch",
    "max-length",
    "max-source-length",
    "max-tokens",
    "beams",
    "num-answers",
    "max-distinct-words",
    "workers",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that there is no memory left, in the machine or on its GPU."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or any(phrase in said for phrase in PHRASES)


def describe_shortage(flags: AbstractSet[str]) -> str:
    """What to do where memory ran out.

    Args:
        flags: of the command, without dashes before them.
    """
    lower = [f"--{flag}" for flag in FLAGS if flag in flags]
    advice = f"lower {' or '.join(lower)}, or take" if lower else "take shorter texts,"
    return f"out of memory; {advice} a smaller model or a machine with more memory"
