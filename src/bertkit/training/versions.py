"""The software and hardware that a run's exact results depend on."""

import os
import platform

import torch

from bertkit._version import __version__


def describe_versions(device: torch.device, precision: str) -> dict[str, str]:
    """Return the software versions and machine properties that exact results depend on.

    Args:
        device: the device that computes.
        precision: precision of matrix products.
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
