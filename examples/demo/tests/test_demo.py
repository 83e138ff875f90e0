"""`bertkit demo`, as a user runs it, on a few packages of the standard library."""

import json
from importlib.util import find_spec

import pytest

from bertkit.cli.main import main
from bertkit.inference.fill_mask import FillMask
from bertkit.training import budget, lifecycle
from bertkit.training.budget import StepPace
from bertkit_demo import python_docs

PACE = StepPace(
    step_seconds=50.0,
    evaluation_seconds=0.0,
    tokens_per_step=1.0,
    operations_per_step=1.0,
    peak_memory_bytes=1,
)
PACKAGES = {"argparse", "asyncio", "email", "json", "typing"}  # asyncio is held out


def is_bundled() -> bool:
    """Whether the package of the model that comes with bertkit is installed."""
    return find_spec("bertkit_minilm") is not None


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder of one short demo, and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    everything = python_docs.find_modules()
    chosen = [module for module in everything if module.package in PACKAGES]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(python_docs, "find_modules", lambda: chosen)
        patch.setattr(budget, "measure_pace", lambda *_: PACE)
        patch.setattr(lifecycle, "find_seconds", lambda *_: None)  # it isn't planned again
        yield folder, ["demo", "--output", str(folder), "--device", "cpu", "--minutes"]


def test_the_demo_writes_a_vocabulary_shards_a_run_and_a_report(demo, capsys):
    folder, command = demo
    assert main([*command, "10", "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert "4/5  Pre-training" in captured.err
    accuracies = result["accuracies"]
    assert accuracies["num_masked"] > 500
    assert 0.0 < accuracies["most_frequent"] < accuracies["neighbors"] < 1.0
    assert accuracies["most_frequent_token"] in {".", ",", "the"}
    assert len(result["examples"]) == 5
    assert all(bool(example["bundled"]) == is_bundled() for example in result["examples"])
    assert any(example["before"] != example["after"] for example in result["examples"])
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert f"{100 * accuracies['neighbors']:.1f}\N{NO-BREAK SPACE}%" in html
    assert "<polyline" in html
    assert FillMask.load(folder / "run")("The [MASK] is empty.").blanks


def test_the_same_command_again_takes_up_what_is_there(demo, capsys):
    folder, command = demo
    watched = [
        "corpus/training.txt",
        "tokenizer/vocab.txt",
        "shards/manifest.json",
        "run/log.jsonl",
    ]
    before = {name: (folder / name).stat().st_mtime_ns for name in watched}
    (folder / "report.html").unlink()
    assert main([*command, "10"]) == 0
    captured = capsys.readouterr()
    assert {name: (folder / name).stat().st_mtime_ns for name in watched} == before
    assert (folder / "report.html").is_file()
    assert "2/5" not in captured.err
    assert f"bertkit fill-mask --model {folder / 'run'}" in captured.out
    assert "blanks right" in captured.out


def test_a_lost_log_costs_the_curves_and_nothing_else(demo, capsys):
    folder, command = demo
    (folder / "run" / "log.jsonl").unlink()
    (folder / "report.html").unlink()
    assert main([*command, "10"]) == 0
    assert "blanks right" in capsys.readouterr().out
    assert "<polyline" not in (folder / "report.html").read_text(encoding="utf-8")
