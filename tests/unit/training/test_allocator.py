import subprocess
import sys

import pytest

# Blocks of 40 MB, ten times: fresh pages each time are 100,000 of 4 KiB.
PROGRAM = """
import resource, sys
import numpy as np
from bertkit.training.allocator import keep_freed_memory

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
