"""`bertkit devices`: what this machine computes on, how fast, and in which precision."""

import json as json_module
from dataclasses import asdict
from typing import TYPE_CHECKING

from bertkit.base.wording import pluralize
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import legible

if TYPE_CHECKING:
    from bertkit.hardware.report import DeviceReport


def devices(*, json: bool = False) -> None:
    """List the processor and the GPUs, with measured speeds of matrix products.

    Shows the device and the precision that auto stands for in --device and --precision, which
    depends on the kind of processor or GPU alone; if the measured speeds contradict it, a line says
    so. Takes a second for each device.

    **Examples**

        bertkit devices

        bertkit devices --json

    Args:
        json: Print one JSON object per device.
    """
    check_standard_output()
    from bertkit.hardware.report import describe_devices

    for report in describe_devices():
        print(json_module.dumps(asdict(report)) if json else describe(report))


def describe(report: "DeviceReport") -> str:
    """Format a device as lines of text."""
    threads = f", {pluralize(report.num_threads, 'thread')}" if report.num_threads else ""
    features = ", ".join(report.features) or "no instructions for bf16 or int8"
    lines = [f"{report.device}{' (default)' if report.is_default else ''}: {legible(report.model)}"]
    lines.append(f"  {features}{threads}")
    for precision, rate in report.operations_per_second.items():
        jobs = {"inference": report.inference_precision, "training": report.training_precision}
        taken = " and ".join(job for job, chosen in jobs.items() if chosen == precision)
        remark = f"  --precision auto for {taken}" if taken else ""
        lines.append(f"  {precision}  {rate / 1e9:8,.0f} GFLOP/s{remark}")
    if report.doubt:
        lines.append(f"  {report.doubt}")
    return "\n".join(lines)
