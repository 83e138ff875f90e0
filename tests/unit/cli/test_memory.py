"""Running out of memory, as each library says it."""

import pytest
import torch

from bertkit.cli.memory import describe_shortage, is_out_of_memory

SHORTAGES = [
    MemoryError(),
    MemoryError("Unable to allocate 7.45 GiB for an array"),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."),
    RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory"),
    RuntimeError("std::bad_alloc"),
    OSError(12, "Cannot allocate memory"),
    ImportError("libtorch_cpu.so: failed to map segment from shared object"),
]


@pytest.mark.parametrize("error", SHORTAGES, ids=repr)
def test_a_shortage_is_known(error):
    assert is_out_of_memory(error)


def test_what_torch_itself_says():
    with pytest.raises(RuntimeError) as raised:
        torch.empty(1 << 55)
    assert is_out_of_memory(raised.value)


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), KeyError("memory")], ids=repr)
def test_a_bug_is_none(error):
    assert not is_out_of_memory(error)


def test_it_names_the_flags_that_the_command_has():
    assert describe_shortage({"max-length", "batch-size", "output"}) == (
        "out of memory; lower --batch-size or --max-length, or use a smaller model or a machine"
        " with more memory"
    )
    assert describe_shortage({"output"}) == (
        "out of memory; use shorter texts, a smaller model or a machine with more memory"
    )
