"""What a run's bits depend on beside its settings and data."""

import os
import platform

import torch

from bertkit._version import __version__


def describe_versions() -> dict[str, str]:
    """The programs and the machine's traits on which a run's bits depend."""
    return {
        "bertkit": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": str(torch.get_num_threads()),
        "processor": platform.machine(),
        "cores": str(os.cpu_count()),
    }
