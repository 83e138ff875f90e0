"""What is told of a machine on which a run's bits depend."""

import torch

from bertkit.training.versions import describe_versions


def test_on_a_processor_its_instructions_are_told():
    versions = describe_versions(torch.device("cpu"), "bf16")
    assert versions["device"] == "cpu"
    assert versions["precision"] == "bf16"
    assert versions["instructions"] == torch.backends.cpu.get_cpu_capability()
    assert "gpu" not in versions


def test_a_gpu_is_told_by_its_name(monkeypatch):
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: f"number {device.index}")
    monkeypatch.setattr("torch.version.cuda", "13.0")
    versions = describe_versions(torch.device("cuda", 1), "fp32")
    assert versions["device"] == "cuda"
    assert versions["gpu"] == "number 1"
    assert versions["cuda"] == "13.0"
