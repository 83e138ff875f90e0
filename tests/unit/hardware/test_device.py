"""What --precision auto takes is a function of the device, never of a clock."""

import pytest
import torch

from bertkit.hardware import device as module
from bertkit.hardware import processor
from bertkit.hardware.device import choose_precision, measure_peak
from bertkit.hardware.processor import Processor

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("vendor", "flags", "inference", "training"),
    [
        ("GenuineIntel", ("amx_bf16", "avx512_bf16"), "bf16", "fp32"),
        ("GenuineIntel", ("avx512_bf16", "avx512_vnni"), "fp32", "fp32"),
        ("AuthenticAMD", ("avx512_bf16", "avx512_vnni"), "bf16", "bf16"),
        ("AuthenticAMD", (), "fp32", "fp32"),
        ("", ("avx512_bf16",), "fp32", "fp32"),
    ],
)
def test_auto_follows_the_table(monkeypatch, vendor, flags, inference, training):
    monkeypatch.setattr(processor, "read_processor", lambda: Processor(vendor, "P", flags))
    monkeypatch.delattr(module, "time")  # whoever measures, fails
    assert choose_precision("auto", CPU, "inference") == inference
    assert choose_precision("auto", CPU, "training") == training


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), "fp32"), ((8, 0), "bf16")])
def test_gpus_before_ampere_compute_in_float32(monkeypatch, capability, expected):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert choose_precision("auto", torch.device("cuda"), "training") == expected


@pytest.mark.parametrize(("flags", "is_warned"), [((), True), (("avx512_bf16",), False)])
def test_bf16_that_is_emulated_is_called_slow(monkeypatch, capsys, flags, is_warned):
    monkeypatch.setattr(processor, "read_processor", lambda: Processor("", "P", flags))
    assert choose_precision("bf16", CPU, "inference") == "bf16"
    assert ("emulates bf16" in capsys.readouterr().err) == is_warned


def test_a_rate_is_a_number_of_operations_per_second():
    assert 1e6 < measure_peak(CPU, "fp32", sizes=(128,)) < 1e15


def test_a_precision_that_is_slow_is_measured_for_a_second(monkeypatch):
    clock = [0.0]

    def multiply(left: torch.Tensor, right: torch.Tensor) -> None:
        clock.append(clock[-1] + 0.4)

    monkeypatch.setattr(torch, "mm", multiply)
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock[-1])
    rate = measure_peak(CPU, "bf16", sizes=(10, 20))
    assert rate == pytest.approx(2 * 10**3 / 0.4)
    assert clock[-1] == pytest.approx(1.2)
