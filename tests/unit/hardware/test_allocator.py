import os
import subprocess
import sys

import pytest
import torch

from bertkit.hardware import allocator
from bertkit.hardware.allocator import KERNEL_CACHES, prepare_memory

# Blocks of 40 MB, ten times: fresh pages each time are 100,000 of 4 KiB.
PROGRAM = """
import resource, sys
import numpy as np
from bertkit.hardware.allocator import keep_freed_memory

if "keep" in sys.argv:
    assert keep_freed_memory()
np.ones(5_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    np.ones(5_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def count_page_faults(*arguments):
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of Linux's C library")
def test_freed_memory_is_used_again():
    assert count_page_faults("keep") < count_page_faults() / 10


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_few_kernels_are_kept_on_a_cpu(device, monkeypatch):
    monkeypatch.setattr(allocator, "keep_freed_memory", lambda: True)
    monkeypatch.delenv("LRU_CACHE_CAPACITY", raising=False)
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "7")
    prepare_memory(torch.device(device))
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "7"  # of the user
    assert os.environ.get("LRU_CACHE_CAPACITY") == ("64" if device == "cpu" else None)


# A product of another shape in each step, as packed batches have them.
SHAPES = """
import sys, torch
from pathlib import Path
from bertkit.hardware.allocator import keep_few_kernels

def count_pages():
    return int(Path("/proc/self/statm").read_text().split()[1])

if "few" in sys.argv:
    keep_few_kernels()
layer = torch.nn.Linear(64, 64)
for num_tokens in range(200, 350):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        layer(torch.zeros(num_tokens, 64)).sum().backward()
    if num_tokens == 240:
        before = count_pages()
print(count_pages() - before)
"""


@pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="no bf16 kernels on this processor"
)
def test_memory_does_not_grow_with_the_number_of_shapes():
    others = {name: value for name, value in os.environ.items() if name not in KERNEL_CACHES}
    few, many = (
        int(subprocess.check_output([sys.executable, "-c", SHAPES, *words], env=others, text=True))
        for words in (["few"], [])
    )
    assert few < many / 3
