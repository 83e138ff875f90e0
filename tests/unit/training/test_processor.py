"""The kind of a processor is read from /proc/cpuinfo."""

import pytest

from bertkit.training import processor as module
from bertkit.training.processor import Processor, read_processor

INFO = (
    "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n"
    "flags\t\t: fpu sse2 avx512_bf16 avx512_vnni amx_tile\nbugs\t\t: none\n\nprocessor\t: 1\n"
)


@pytest.fixture(autouse=True)
def forget():
    read_processor.cache_clear()
    yield
    read_processor.cache_clear()


def test_vendor_name_and_instruction_sets_are_read(tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_text(INFO)
    monkeypatch.setattr(module, "CPU_INFO", tmp_path / "cpuinfo")
    found = read_processor()
    assert found == Processor("AuthenticAMD", "AMD EPYC", ("avx512_bf16", "avx512_vnni"))


def test_a_system_without_cpuinfo_has_no_known_instructions(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CPU_INFO", tmp_path / "missing")
    monkeypatch.setattr(module.platform, "processor", lambda: "")
    assert read_processor() == Processor("", "unknown processor", ())


def test_fields_that_are_missing_are_empty(tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_text("Hardware\t: BCM2835\n")
    monkeypatch.setattr(module, "CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(module.platform, "processor", lambda: "arm")
    assert read_processor() == Processor("", "arm", ())
