"""The words that make a study again, and how the command ends."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.unit.base.test_progress import Broken

from bertkit.cli.streams import hold_standard_output
from bertkit_studies import run
from bertkit_studies.settings import PretrainingSettings, TranslationSettings
from bertkit_studies.study_command import FailedRunsError, build_command, describe_command

OUT = Path("my study")


def test_the_command_makes_all_arms_and_nothing_that_is_the_default():
    settings = PretrainingSettings(data=Path("shards"), seeds=5, only=("with",))
    words = "bertkit study steps --seeds 5 --data shards --output 'my study'"
    assert describe_command("steps", settings, OUT) == words


def test_switches_and_several_files_are_written_as_they_are_read():
    settings = TranslationSettings(train=("a.de", "a.en"), header=False)
    words = describe_command("translation", settings, OUT)
    assert "--no-header" in words
    assert "False" not in words
    assert "--train a.de --train a.en" in words


def test_runs_that_failed_are_an_error_whoever_reads(monkeypatch, tmp_path):
    outcome = SimpleNamespace(failures={"a": "no text"}, num_cells=2, to_json=dict)
    monkeypatch.setattr(run, "run_study", lambda *_: outcome)
    words = dict.fromkeys(("summary", "inputs", "arm"), "")
    entry = SimpleNamespace(
        settings=PretrainingSettings, load=lambda: lambda settings: settings, **words
    )
    command = build_command("steps", entry)
    monkeypatch.setattr(sys, "stdout", Broken(BrokenPipeError(), is_terminal=False))
    settings = PretrainingSettings(data=Path("shards"))
    with pytest.raises(FailedRunsError, match="1 of 2 runs failed"), hold_standard_output():
        command(settings=settings, output=tmp_path, json=True)
