"""What a run's bits depend on beside its settings and data."""

import os
import platform

import torch

from bertkit._version import __version__


def describe_versions(device: torch.device, precision: str) -> dict[str, str]:
    """The programs and the machine's traits on which a run's bits depend.

    Args:
        device: where it computes.
        precision: of matrix products.
    """
    versions = {
        "bertkit": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": str(torch.get_num_threads()),
        "device": device.type,
        "precision": precision,
        "processor": platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": str(os.cpu_count()),
    }
    if device.type == "cuda":
        versions["gpu"] = torch.cuda.get_device_name(device)
        versions["cuda"] = str(torch.version.cuda)
    return versions
