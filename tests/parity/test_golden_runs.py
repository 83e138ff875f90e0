"""Runs that an earlier version began and was stopped in: resumed, they end as they would have."""

import json
import shutil
from pathlib import Path

import pytest
from safetensors.numpy import load_file
from tests.closeness import close

import bertkit
from bertkit.base.settings import WITHOUT_FLAG
from bertkit.cli.main import main
from bertkit.training.log import CLOCK_FIELDS, read_log

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "runs"
MODELS = {"pretrain": "output/checkpoints/step-00000008", "finetune": "output", "seq2seq": "output"}
LOGS = {"pretrain": "output", "finetune": "output/run", "seq2seq": "output/run"}


def resume(words):
    """Run a command; one with settings that are Python's alone by now, as a function."""
    flags = {word for word in words if word.startswith("--")}
    if flags.isdisjoint(f"--{name.replace('_', '-')}" for name in WITHOUT_FLAG):
        assert main(words) == 0
        return
    name, task, *pairs = words
    assert name == "finetune"
    names = (flag.removeprefix("--").replace("-", "_") for flag in pairs[::2])
    bertkit.finetune(task, **dict(zip(names, pairs[1::2], strict=True)))


@pytest.mark.parametrize("name", MODELS)
def test_a_run_of_an_earlier_version_is_resumed_to_its_end(name, tmp_path, monkeypatch, capsys):
    folder = shutil.copytree(GOLDEN / name, tmp_path / name)
    monkeypatch.chdir(folder)
    resume(json.loads((folder / "arguments.json").read_text()))
    assert "resuming after step 5 of output" in capsys.readouterr().err
    weights = load_file(folder / MODELS[name] / "model.safetensors")
    expected = load_file(folder / "expected" / "model.safetensors")
    assert weights.keys() == expected.keys()
    if name == "finetune":  # that version kept the temperature beside the head, this one in it
        bias = "classifier.bias"
        temperature = abs(expected[bias]).max() / abs(weights[bias]).max()
        weights |= {key: weights[key] * temperature for key in (bias, "classifier.weight")}
    for key, value in expected.items():
        assert weights[key] == close(value), key
    lines = (folder / "expected" / "log.jsonl").read_text().splitlines()
    for row, old in zip(read_log(folder / LOGS[name] / "log.jsonl"), lines, strict=True):
        expected = json.loads(old)
        values = {key: value for key, value in row.items() if key not in CLOCK_FIELDS}
        assert values.pop("event") == expected.pop("event")
        values = {key: values[key] for key in expected}  # this version may log more
        assert values == close(expected, "float32")
