"""What a user sees who asks for help or errs, on the real commands."""

import re
import subprocess
import sys

import pytest

from bertkit.cli.app import COMMANDS, build_app, list_commands
from bertkit.cli.main import main
from bertkit.tasks.table import TASKS

MAX_MODULES = 500  # torch alone has more
ALL = list(list_commands(build_app()))


def test_the_list_says_what_each_command_is_for(capsys):
    assert main([]) == 0
    bare = capsys.readouterr().out
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert bare == shown
    rows = [line.strip("│ ").split(maxsplit=1) for line in shown.splitlines() if "│" in line]
    names = {*(name.partition(" ")[0] for name in COMMANDS), *TASKS, "finetune"}
    summaries = {row[0]: row[1] for row in rows if row[0] in names and len(row) > 1}
    assert summaries.keys() == names
    assert "--config" in shown


@pytest.mark.parametrize("name", ALL)
def test_help_explains_every_flag_and_shows_an_example(capsys, name):
    assert main([*name.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"bertkit {name} " in shown.partition("\n")[2], "no example"
    flags = [line for line in shown.splitlines() if line.strip("│* ").startswith("--")]
    assert flags
    assert "--config" in shown
    assert "{" not in shown.replace("{label}", ""), "a value that wasn't filled in"


def test_finetune_lists_its_tasks(capsys):
    assert main(["finetune"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in TASKS if f"│ {name} " in shown] == list(TASKS)


def test_what_matters_most_stands_first(capsys):
    assert main(["finetune", "classify", "--help"]) == 0
    _, shown = capsys.readouterr().out.split("\n╭", maxsplit=1)
    order = [
        "Model and data", "--train ", "--dev ", "--output ", "--model ", "Task", "--text-column ",
        "--label-column ", "Training", "--epochs ", "--learning-rate ", "--freeze ", "--seed ",
        "Reading files", "--delimiter ",
    ]  # fmt: skip
    places = [shown.index(f"─ {word}" if word[0] != "-" else word) for word in order]
    assert places == sorted(places)
    assert main(["finetune", "--help"]) == 0
    assert "─ Texts from texts ─" in capsys.readouterr().out
    for command, panel in (("classify", "Reading files"), ("pretrain", "Optimizer")):
        assert main([command, "--help-all"]) == 0
        shown = capsys.readouterr().out
        assert shown.index("─ Parameters ─") < shown.index(f"─ {panel} ─")


def test_the_list_of_commands_begins_with_what_most_people_want(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    panels = re.findall(r"^╭─ (.*?) ─", shown, re.MULTILINE)
    assert panels[:2] == ["Start here", "Fine-tuning and prediction"]
    first = shown.split("╰")[0]
    names = ["classify", "search", "embed", "fill-mask", "finetune"]
    assert re.findall(r"^│ ([a-z-]+) ", first, re.MULTILINE) == names
    assert all(len(re.findall(rf"^│ {name} ", shown, re.MULTILINE)) == 1 for name in names)


def test_help_is_quick():
    """Loading modules is what takes time; they are counted, since no clock is the same twice."""
    words = [sys.executable, "-X", "importtime", "-m", "bertkit", "--help"]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    assert told.count("import time:") < MAX_MODULES
