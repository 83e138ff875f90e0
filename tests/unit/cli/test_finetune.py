"""What `bertkit finetune` says, and which commands it has."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from bertkit.cli.finetune import describe, describe_pairs
from bertkit.cli.main import build_app, list_commands, list_flags, main
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.table import TASKS

RESULT = SimpleNamespace(
    output=Path("out"),
    comparison=None,
    best_step=1200,
    num_steps=3000,
    evaluation=Evaluation(
        {"pearson": math.nan, "mse": 0.25}, warnings=("every prediction is 'x'",)
    ),
)


def test_a_result_is_told_in_a_line_and_what_is_odd_behind_it():
    assert describe(RESULT, json=False).splitlines() == [
        "out: best after step 1,200 of 3,000: pearson nan, mse 0.2500",
        "WARNING: every prediction is 'x'",
    ]


def test_a_label_steers_no_terminal():
    found = Evaluation({"f1 a\nb\x1b[31m": 1.0})
    result = SimpleNamespace(**{**vars(RESULT), "evaluation": found})
    (line,) = describe(result, json=False).splitlines()
    assert line.endswith("f1 a b␛[31m 1.0000")


def test_metrics_of_many_labels_stay_a_line():
    metrics = {"accuracy": 0.5, **{f"f1 {number} {'x' * 99}": 0.25 for number in range(100)}}
    found = SimpleNamespace(**{**vars(RESULT), "evaluation": Evaluation(metrics)})
    (line,) = describe(found, json=False).splitlines()
    assert line.endswith(f"f1 10 {'x' * 33}… 0.2500 and 89 more in metrics.json")


def test_what_is_not_defined_is_null_in_json():
    assert json.loads(describe(RESULT, json=True)) == {
        "output": "out",
        "metrics": {"pearson": None, "mse": 0.25},
        "calibration": None,
        "warnings": ["every prediction is 'x'"],
    }


def test_what_is_odd_about_pairs_is_told_to_people_and_programs():
    names = {"kind": "translate", "metrics": {"bleu": 0.0}, "signatures": {"bleu": "nrefs:1"}}
    counts = {"num_steps": 1200, "num_epochs": 2.5, "warnings": ("bleu is uninformative here",)}
    result = SimpleNamespace(output=Path("out"), saved=SimpleNamespace(**names, **counts))
    assert "bleu is uninformative here" in describe_pairs(result, json=False).splitlines()
    assert json.loads(describe_pairs(result, json=True)) == {
        "output": "out",
        "metrics": {"bleu": 0.0},
        "signatures": {"bleu": "nrefs:1"},
        "warnings": ["bleu is uninformative here"],
    }


@pytest.mark.parametrize("task", TASKS)
def test_each_task_has_its_own_flags_and_those_of_all(task):
    flags = list_flags(list_commands(build_app())[f"finetune {task}"])
    names = {*TASKS[task].settings.model_fields, *FineTuneSettings.model_fields}
    assert {name.replace("_", "-") for name in names} <= flags


def test_a_task_of_another_kind_has_its_commands_with_its_line(monkeypatch, capsys):
    monkeypatch.setitem(TASKS, "label-again", TASKS["classify"])
    names = list_commands(build_app()).keys()
    assert {"label-again", "finetune label-again"} <= names
    assert main(["--help"]) == 0
    assert "label-again" in capsys.readouterr().out


def test_a_misspelled_task_gets_a_suggestion(capsys):
    assert main(["finetune", "clasify"]) == 2
    error = capsys.readouterr().err
    assert 'Did you mean "classify"?' in error
    assert error.count("\n") == 1
