"""The report names the processor and what auto takes."""

import dataclasses

import pytest
import torch

from bertkit.cli.devices import describe
from bertkit.hardware.device import choose_precision
from bertkit.hardware.report import DeviceReport, describe_devices, doubt_choice

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
    device = torch.device("cpu")
    assert cpu.inference_precision == choose_precision("auto", device, "inference")
    assert cpu.training_precision == choose_precision("auto", device, "training")
    assert all(1e6 < rate < 1e15 for rate in cpu.operations_per_second.values())
    assert cpu.operations_per_second.keys() == {"fp32", "bf16"}


def test_lines_say_what_auto_takes():
    lines = describe(GPU).splitlines()
    assert lines[0] == "cuda:0 (default): NVIDIA X"
    assert lines[1] == "  compute capability 9.0"
    assert lines[2] == "  fp32    50,000 GFLOP/s"
    assert lines[3] == "  bf16   600,000 GFLOP/s  --precision auto for inference and training"


@pytest.mark.parametrize(
    ("taken", "gain", "advised"),
    [("fp32", 2.0, "bf16"), ("fp32", 1.4, ""), ("bf16", 0.9, "fp32"), ("bf16", 2.0, "")],
)
def test_a_choice_that_measures_wrong_is_doubted(taken, gain, advised):
    doubt = doubt_choice(taken, gain)
    assert (f"--precision {advised} " in doubt) if advised else not doubt
    line = describe(dataclasses.replace(GPU, doubt=doubt)).splitlines()[-1]
    assert (line.strip() == doubt) == bool(advised)
