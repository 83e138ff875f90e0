"""The report names the processor and what auto takes."""

from pathlib import Path

import torch

from bertkit.cli.devices import describe
from bertkit.hardware import report as module
from bertkit.hardware.report import DeviceReport, describe_devices, read_cpu_model

GPU = DeviceReport(
    device="cuda:0",
    model="NVIDIA X",
    num_threads=0,
    features=("compute capability 9.0",),
    operations_per_second={"fp32": 5e13, "bf16": 6e14},
    inference_precision="bf16",
    training_precision="bf16",
    is_default=True,
)


def test_the_processor_is_measured(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    (cpu,) = describe_devices()
    assert cpu.device == "cpu"
    assert cpu.is_default
    assert cpu.num_threads == torch.get_num_threads()
    assert cpu.training_precision == "fp32"
    assert all(1e6 < rate < 1e15 for rate in cpu.operations_per_second.values())
    assert cpu.operations_per_second.keys() == {"fp32", "bf16"}


def test_a_name_is_read_where_there_is_one(monkeypatch):
    text = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold\nflags\t: fpu\n"
    monkeypatch.setattr(Path, "read_text", lambda self, **_: text)
    assert read_cpu_model() == "Intel(R) Xeon(R) Gold"
    monkeypatch.setattr(Path, "read_text", lambda self, **_: "Hardware\t: BCM2835\n")
    monkeypatch.setattr(module.platform, "processor", lambda: "")
    assert read_cpu_model() == "unknown processor"


def test_lines_say_what_auto_takes():
    lines = describe(GPU).splitlines()
    assert lines[0] == "cuda:0 (default): NVIDIA X"
    assert lines[1] == "  compute capability 9.0"
    assert lines[2] == "  fp32    50,000 GFLOP/s"
    assert lines[3] == "  bf16   600,000 GFLOP/s  --precision auto for inference and training"
