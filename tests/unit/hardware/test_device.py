"""bf16 is for processors that have it and measure faster with it."""

import builtins
from pathlib import Path

import pytest
import torch

from bertkit.hardware import device as module
from bertkit.hardware.device import (
    choose_precision,
    is_bf16_faster,
    list_cpu_flags,
    measure_peak,
)

CPU = torch.device("cpu")
INFO = "processor\t: 0\nflags\t\t: fpu sse2 avx512_bf16 avx512_vnni amx_tile\nbugs\t\t: none\n"


@pytest.fixture(autouse=True)
def forget():
    is_bf16_faster.cache_clear()
    yield
    is_bf16_faster.cache_clear()


def test_instruction_sets_are_read(monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda self, **_: INFO)
    assert list_cpu_flags() == ("avx512_bf16", "avx512_vnni")


def test_a_system_without_cpuinfo_has_none(monkeypatch):
    def fail(self, **_):
        raise builtins.FileNotFoundError(self)

    monkeypatch.setattr(Path, "read_text", fail)
    assert list_cpu_flags() == ()


@pytest.mark.parametrize(
    ("flags", "rates", "expected"),
    [
        (("amx_bf16",), {"bf16": 10.0, "fp32": 1.0}, True),
        (("avx512_bf16",), {"bf16": 1.4, "fp32": 1.0}, False),  # too little for a whole model
        (("avx512_vnni",), {}, False),  # not even measured
        ((), {}, False),
    ],
)
def test_bf16_is_measured_where_the_processor_has_it(monkeypatch, flags, rates, expected):
    monkeypatch.setattr(module, "list_cpu_flags", lambda: flags)
    monkeypatch.setattr(module, "measure_peak", lambda device, one, sizes: rates[one])
    assert is_bf16_faster() == expected


def test_a_cpu_trains_in_float32_unless_told_otherwise():
    assert choose_precision("auto", CPU) == "fp32"
    assert choose_precision("bf16", CPU) == "bf16"


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), "fp32"), ((8, 0), "bf16")])
def test_gpus_before_ampere_compute_in_float32(monkeypatch, capability, expected):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert choose_precision("auto", torch.device("cuda")) == expected


def test_a_rate_is_a_number_of_operations_per_second():
    assert 1e6 < measure_peak(CPU, "fp32", sizes=(128,)) < 1e15
