"""A step that isn't finite → a dump → the same step again, through the command line."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.e2e.small import pretrain_words
from tests.unit.training.jobs import seal_again

from bertkit.cli.main import main
from bertkit.tasks.objectives.bert import BertObjective
from bertkit.training import step
from bertkit.training.step import dump_path, list_dumps

BROKEN = "encoder.layers.1.feed_forward.up"
HEAD_BIAS = "masked_lm.bias"
STEP, PARTS = 4, 2


@pytest.fixture(scope="module")
def dumped(workshop):
    """A run that ended because at step 4 a weight became so large that products overflow."""
    output = workshop / "dumped"
    words = pretrain_words(workshop, output, "--accumulate", str(PARTS), "--dropout", "0.3")
    words += ["--eval-every", "100"]
    num_scored = 0
    whole = BertObjective.loss

    def poison(model, batch):
        nonlocal num_scored
        num_scored += model.training
        if num_scored == PARTS * (STEP - 1) + 1:
            with torch.no_grad():
                model.get_parameter(f"{BROKEN}.weight").fill_(3e38)
        return whole(model, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BertObjective, "loss", staticmethod(poison))
        assert main([*words, "--max-skipped-steps", "5"]) == 2
    return output


@contextmanager
def opened_copy(dumped: Path, folder: Path) -> Iterator[Path]:
    """A copy of the first dump, to be changed, and then sealed as if it had been written so."""
    path = folder / "dump"
    shutil.copytree(list_dumps(dumped)[0], path)
    yield path
    seal_again(path, STEP)


def change_weights(path: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    weights = load_file(path / "weights.safetensors")
    change(weights)
    save_file(weights, path / "weights.safetensors")


def replay(path: Path, capsys, *words: str) -> dict:
    assert main(["replay", str(path), "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_run_says_how_it_can_be_shown_again(workshop, capfd):
    words = pretrain_words(workshop, workshop / "told", steps=40)
    words[words.index("--learning-rate") + 1] = "1e30"
    assert main(words) == 2
    error = capfd.readouterr().err
    assert f"`bertkit replay {dump_path(workshop / 'told', 2)}` replays step 2" in error
    assert "lower --learning-rate" in error


def test_the_step_is_shown_again_with_the_module_where_it_began(dumped, capsys):
    assert [int(path.name[5:]) for path in list_dumps(dumped)] == [4, 5, 6]
    facts = replay(list_dumps(dumped)[0], capsys)
    assert facts["step"] == STEP
    assert facts["is_same"]
    assert not facts["is_finite"]
    assert facts["metrics"]["loss"] is None
    assert facts["metrics"] == facts["recorded"]
    assert facts["first_module"] == [BROKEN, 0]
    assert facts["broken_weights"] == []
    assert f"{BROKEN}.weight" in facts["broken_gradients"]
    assert facts["differences"] == []


def test_the_examples_are_shown_as_the_model_saw_them(dumped, capsys):
    examples = replay(list_dumps(dumped)[0], capsys)["examples"]
    assert len(examples) == 16
    assert len({example["name"] for example in examples}) == 16
    assert all(example["name"].count("/") == 2 for example in examples)
    assert all(example["text"].endswith("[SEP]") for example in examples)
    assert any("[MASK]" in example["text"] for example in examples)


def test_in_64_bits_what_overflowed_is_finite(dumped, capsys):
    facts = replay(list_dumps(dumped)[0], capsys, "--fp64")
    assert facts["is_finite"]
    assert facts["first_module"] is None
    assert facts["broken_gradients"] == []
    assert main(["replay", str(list_dumps(dumped)[0]), "--fp64"]) == 0
    assert "overflowed in the run's precision" in capsys.readouterr().out


def test_the_report_for_people(dumped, capsys):
    assert main(["replay", str(list_dumps(dumped)[0])]) == 0
    text = capsys.readouterr().out
    assert text.startswith("step 4: loss nan, ")
    assert "Identical to the run, bit for bit." in text
    assert f"isn't finite: {BROKEN} (micro-batch 0)" in text
    assert "weights that aren't finite: none" in text
    assert ", and " in text  # of the gradients only the first few are named
    assert "[MASK]" in text


def test_a_step_with_finite_numbers_gives_the_same_bits_and_other_dropout_does_not(
    workshop, tmp_path, capsys, monkeypatch
):
    words = ["--accumulate", str(PARTS), "--dropout", "0.3", "--max-skipped-steps", "2"]
    with monkeypatch.context() as patch:
        patch.setattr(step, "is_finite", lambda metrics: False)
        assert main(pretrain_words(workshop, tmp_path / "run", *words)) == 2
    capsys.readouterr()
    path = dump_path(tmp_path / "run", 2)
    facts = replay(path, capsys)
    assert facts["is_same"]
    assert facts["is_finite"]
    assert facts["metrics"]["gradient_norm"] > 0
    assert facts["first_module"] is None
    monkeypatch.setattr(step, "derive_seed", lambda seed, step, number: seed + number)
    other = replay(path, capsys)
    assert not other["is_same"]
    assert other["recorded"] == facts["recorded"]
    assert main(["replay", str(path)]) == 0
    assert "In the run it was loss " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record.update(step=0), "isn't the record of a dump: step"),
        (lambda record: record.update(num_micro_batches=1), "doesn't hold the 1 micro-batches"),
        (lambda record: record.update(num_micro_batches=3), "doesn't hold the 3 micro-batches"),
        (lambda record: record.update(num_micro_batches=10**12), "the 1,000,000,000,000 micro-"),
        (lambda record: record["metrics"].update(loss="abc"), "metrics.loss: could not convert"),
        (lambda record: record["settings"].update(strange=1), "dump.json: strange"),
    ],
)
def test_a_foreign_dump_is_refused_in_one_line(dumped, tmp_path, capsys, change, message):
    with opened_copy(dumped, tmp_path) as path:
        record = json.loads((path / "dump.json").read_text())
        change(record)
        (path / "dump.json").write_text(json.dumps(record))
    assert main(["replay", str(path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_weights_of_another_model_are_refused(dumped, tmp_path, capsys):
    with opened_copy(dumped, tmp_path) as path:
        config = json.loads((path / "config.json").read_text())
        (path / "config.json").write_text(json.dumps(config | {"intermediate_size": 32}))
    assert main(["replay", str(path)]) == 2
    assert "doesn't hold the weights of the config beside it" in capsys.readouterr().err


def test_weights_of_another_type_are_refused(dumped, tmp_path, capsys):
    def widen(weights):
        weights[HEAD_BIAS] = weights[HEAD_BIAS].double()

    with opened_copy(dumped, tmp_path) as path:
        change_weights(path, widen)
    assert main(["replay", str(path)]) == 2
    assert f"the weights of the config beside it: {HEAD_BIAS}" in capsys.readouterr().err


def test_a_loss_that_overflows_outside_of_all_modules_is_named(dumped, tmp_path, capsys):
    def spoil(weights):
        weights[f"{BROKEN}.weight"].zero_()
        weights[HEAD_BIAS][0] = torch.inf

    with opened_copy(dumped, tmp_path) as path:
        change_weights(path, spoil)
    assert main(["replay", str(path)]) == 0
    text = capsys.readouterr().out
    assert "every module is finite; not finite: loss, mlm_loss, gradient_norm\n" in text
    assert f"weights that aren't finite: {HEAD_BIAS}\n" in text
    assert "In the run it was loss nan, " in text
    assert "although software and machine are the same." in text


def test_another_machine_and_precision_are_named(dumped, tmp_path, capsys):
    with opened_copy(dumped, tmp_path) as path:
        record = json.loads((path / "dump.json").read_text())
        record["versions"] |= {"device": "cuda", "gpu": "A100", "instructions": "SVE256"}
        (path / "dump.json").write_text(json.dumps(record))
    assert replay(path, capsys, "--fp64")["differences"] == [
        "device: 'cuda' → 'cpu'",
        "gpu: 'A100' → None",
        f"instructions: 'SVE256' → {torch.backends.cpu.get_cpu_capability()!r}",
        "precision: 'fp32' → 'fp64'",
    ]


def test_a_run_without_dumps_is_told(trained, capsys):
    assert main(["replay", str(trained)]) == 2
    assert "isn't a dump: expected a folder with dump.json" in capsys.readouterr().err
