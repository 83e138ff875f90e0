"""Recognize out-of-memory errors of each library, and suggest what to do."""

from collections.abc import Set as AbstractSet

# Messages of torch, CUDA, C++, ONNX Runtime, the system and the loader of shared libraries; their
# exceptions have no common class.
PHRASES = (
    "can't allocate memory",
    "cannot allocate memory",
    "failed to allocate memory",
    "not enough memory",
    "out of memory",
    "bad_alloc",
    "failed to map segment",
)
# Flags that lower memory use, most effective first.
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
    """Whether an exception means that the machine or its GPU is out of memory."""
    message = str(error).lower()
    return isinstance(error, MemoryError) or any(phrase in message for phrase in PHRASES)


def describe_shortage(flags: AbstractSet[str]) -> str:
    """Describe what to do after running out of memory.

    Args:
        flags: of the command, without dashes before them.
    """
    lower = [f"--{flag}" for flag in FLAGS if flag in flags]
    advice = f"lower {' or '.join(lower)}, or use" if lower else "use shorter texts,"
    return f"out of memory; {advice} a smaller model or a machine with more memory"
