"""What --precision auto takes is a function of the device, never of a clock."""

import dataclasses
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from tests.closeness import close
from tests.unit.inference.small import save_small

from bertkit.base.extras import describe_missing
from bertkit.cli.model_files import describe_device
from bertkit.recipes.finetune.run import FineTuning, Sources
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.classify import ClassifySettings
from bertkit.training import device as module
from bertkit.training import device_report, processor
from bertkit.training.device import KERNEL_CACHES, choose_precision, measure_peak, prepare_memory
from bertkit.training.device_report import DeviceReport, describe_devices, doubt_choice
from bertkit.training.job import Machine
from bertkit.training.processor import Processor
from bertkit.training.record import RunRecord, keep_precision

# Blocks of 40 MB, ten times: fresh pages each time are 100,000 of 4 KiB.
PROGRAM = """
import resource, sys
import numpy as np
from bertkit.training.device import keep_freed_memory

if "keep" in sys.argv:
    assert keep_freed_memory()
np.ones(5_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    np.ones(5_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def count_page_faults(*arguments):
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of Linux's C library")
def test_freed_memory_is_used_again():
    assert count_page_faults("keep") < count_page_faults() / 10


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_few_kernels_are_kept_on_a_cpu(device, monkeypatch):
    monkeypatch.setattr(module, "keep_freed_memory", lambda: True)
    monkeypatch.delenv("LRU_CACHE_CAPACITY", raising=False)
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "7")
    prepare_memory(torch.device(device))
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "7"  # of the user
    assert os.environ.get("LRU_CACHE_CAPACITY") == ("64" if device == "cpu" else None)


# A product of another shape in each step, as packed batches have them.
SHAPES = """
import sys, torch
from pathlib import Path
from bertkit.training.device import keep_few_kernels

def count_pages():
    return int(Path("/proc/self/statm").read_text().split()[1])

if "few" in sys.argv:
    keep_few_kernels()
layer = torch.nn.Linear(64, 64)
for num_tokens in range(200, 350):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        layer(torch.zeros(num_tokens, 64)).sum().backward()
    if num_tokens == 240:
        before = count_pages()
print(count_pages() - before)
"""


@pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="no bf16 kernels on this processor"
)
def test_memory_does_not_grow_with_the_number_of_shapes():
    others = {name: value for name, value in os.environ.items() if name not in KERNEL_CACHES}
    few, many = (
        int(subprocess.check_output([sys.executable, "-c", SHAPES, *words], env=others, text=True))
        for words in (["few"], [])
    )
    assert few < many / 3


CPU = torch.device("cpu")
SIZES = (None, 32, 128, 192, 256, 384, 768, 1024)  # hidden sizes; None is unknown
NEVER, ALWAYS = ["fp32"] * len(SIZES), ["bf16"] * len(SIZES)
MIXED = ["fp32"] * 4 + ["bf16"] * 4  # bf16 from mini on


@pytest.mark.parametrize(
    ("vendor", "flags", "inference", "training"),
    [
        ("GenuineIntel", ("amx_bf16", "avx512_bf16"), "bf16", MIXED),
        ("GenuineIntel", ("avx512_bf16", "avx512_vnni"), "fp32", NEVER),
        ("AuthenticAMD", ("avx512_bf16", "avx512_vnni"), "bf16", ALWAYS),
        ("AuthenticAMD", (), "fp32", NEVER),
        ("", ("avx512_bf16",), "fp32", NEVER),
    ],
)
def test_auto_follows_the_table(monkeypatch, vendor, flags, inference, training):
    monkeypatch.setattr(processor, "read_processor", lambda: Processor(vendor, "P", flags))
    monkeypatch.delattr(module, "time")  # whoever measures, fails
    assert choose_precision("auto", CPU, "inference") == inference
    found = {size: choose_precision("auto", CPU, "training", size) for size in SIZES}
    assert found == dict(zip(SIZES, training, strict=True))


def test_sizes_are_said_where_they_decide(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    flags = ("amx_bf16", "avx512_bf16")
    monkeypatch.setattr(processor, "read_processor", lambda: Processor("GenuineIntel", "P", flags))
    (report,) = describe_devices()
    fp32, bf16 = describe_device(report).splitlines()[2:4]
    assert fp32.endswith("GFLOP/s  --precision auto for training of smaller models")
    assert bf16.endswith("--precision auto for inference and training, hidden size ≥ 256")


@pytest.mark.parametrize("has_driver", [True, False])
def test_without_torch_nothing_is_measured(monkeypatch, capsys, has_driver):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(device_report, "has_driver", lambda: has_driver)
    monkeypatch.setattr(device_report, "has_gpu", lambda: False)
    monkeypatch.setattr(processor, "read_processor", lambda: Processor("GenuineIntel", "P", ()))
    (report,) = describe_devices()
    assert (report.operations_per_second, report.doubt, report.device) == ({}, "", "cpu")
    assert describe_device(report).splitlines()[2:] == [
        "  fp32  --precision auto for inference and training"
    ]
    told = describe_missing("torch", "computing on a GPU")
    assert capsys.readouterr().err == (f"{told}\n" if has_driver else "")


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), "fp32"), ((8, 0), "bf16")])
def test_gpus_before_ampere_compute_in_float32(monkeypatch, capability, expected):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert choose_precision("auto", torch.device("cuda"), "training") == expected


@pytest.mark.parametrize(("flags", "is_warned"), [((), True), (("avx512_bf16",), False)])
def test_bf16_that_is_emulated_is_called_slow(monkeypatch, capsys, flags, is_warned):
    monkeypatch.setattr(processor, "read_processor", lambda: Processor("", "P", flags))
    assert choose_precision("bf16", CPU, "inference") == "bf16"
    assert ("emulates bf16" in capsys.readouterr().err) == is_warned


def test_a_precision_that_is_slow_is_measured_for_a_second(monkeypatch):
    clock = [0.0]

    def multiply(left: torch.Tensor, right: torch.Tensor) -> None:
        clock.append(clock[-1] + 0.4)

    monkeypatch.setattr(torch, "mm", multiply)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: clock[-1]))
    rate = measure_peak(CPU, "bf16", sizes=(10, 20))
    assert rate == close(2 * 10**3 / 0.4)
    assert clock[-1] == close(1.2)


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


@pytest.mark.parametrize(
    ("taken", "gain", "advised"),
    [("fp32", 2.0, "bf16"), ("fp32", 1.4, ""), ("bf16", 0.9, "fp32"), ("bf16", 2.0, "")],
)
def test_a_choice_that_measures_wrong_is_doubted(taken, gain, advised):
    doubt = doubt_choice(taken, gain)
    assert (f"--precision {advised} " in doubt) if advised else not doubt
    line = describe_device(dataclasses.replace(GPU, doubt=doubt)).splitlines()[-1]
    assert (line.strip() == doubt) == bool(advised)


def test_each_recipe_asks_by_its_model_and_a_run_goes_on_in_its_precision(monkeypatch, tmp_path):
    flags = ("amx_bf16", "avx512_bf16")
    monkeypatch.setattr(processor, "read_processor", lambda: Processor("GenuineIntel", "P", flags))
    save_small(tmp_path / "narrow")
    save_small(tmp_path / "wide", hidden_size=256)
    asked = {}
    for name in ("narrow", "wide"):
        sources = Sources("classify", str(tmp_path / name), "train.csv")
        recipe = FineTuning(sources, ClassifySettings(), FineTuneSettings())
        asked[name] = recipe.find_hidden_size()
    assert asked == {"narrow": 8, "wide": 256}
    settings = FineTuneSettings(device="cpu")
    monkeypatch.setattr("bertkit.training.job.measure_peak", lambda *_: 1.0)
    assert Machine.choose(settings, lambda: 256).precision == "bf16"
    assert Machine.choose(settings, lambda: 128).precision == "fp32"
    assert Machine.choose(settings).precision == "fp32"
    versions = {"precision": "fp32"}
    record = RunRecord(settings={}, data_fingerprint="", model={}, num_steps=9, versions=versions)
    kept = keep_precision(settings, record)
    assert Machine.choose(kept, pytest.fail).precision == "fp32"
