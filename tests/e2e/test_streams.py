"""Every command where standard output or standard error is closed, full, or has lost its reader."""

import errno
import json
import sys

import pytest
from tests.e2e.small import pretrain_words
from tests.unit.base.test_progress import Broken
from tests.wings import has_command

from bertkit.base.wings import TEXT_TASKS
from bertkit.cli.app import COMMANDS
from bertkit.cli.main import main
from bertkit.tasks.table import TASKS
from bertkit.training.record import LOG_FILE

# Commands that leave their result in files, and print what came of it.
WRITING = {
    "demo",
    "train-tokenizer",
    "prepare",
    "pretrain",
    "report",
    "convert",
    "export",
    "serve",
    *(f"finetune {name}" for name in (*TASKS, *TEXT_TASKS)),
}
# The others, with a folder that has no model: what is wrong with standard output is found before.
PRINTING = {
    "pretrain": "pretrain --data none --dry-run",
    "next-word": "next-word none a",
    "study skip-thought": "study skip-thought none a --file none.txt",
    "fill-mask": "fill-mask --model none a[MASK]",
    "generate": "generate none a",
    "score": "score --model none a",
    "embed": "embed --model . none.txt",
    "similarity": "similarity --model none a b",
    "search": "search --model none a --corpus none.txt",
    "index add": "index add none none.txt",
    "index update": "index update none --corpus none.txt",
    "index delete": "index delete none --id a",
    "index info": "index info none",
    "summarize": "summarize none.txt --model none",
    "features": "features none.txt --model none",
    "nearest": "nearest a --model none",
    "attention": "attention --model none a",
    "view": "view --model none a --json",
    "inspect": "inspect none",
    "devices": "devices",
    "review": "review none.csv",
    "evaluate": "evaluate . none.csv",
    "translate": "translate none a",
    "rerank": "rerank . a none.txt",
    **{name: f"{name} . --file none.csv" for name, task in TASKS.items() if task.has_command},
}
# Of each kind of command one that is quick, with what it prints.
QUICK = [
    "train-tokenizer {workshop}/corpus.txt --vocab-size 90 --output {new}/tokenizer",
    "prepare {workshop}/corpus.txt --tokenizer {workshop}/tokenizer --output {new}/new --workers 1",
    "embed --model {model} {texts} --output {new}/vectors.npy",
    "features --model {model} {texts} --output {new}/features.jsonl",
    "convert {model} {new}/converted",
    "embed --model {model} {texts}",
    "features --model {model} {texts}",
    "fill-mask --model {model} --file {masked}",
    "search --model {model} cat --corpus {texts} --index {new}/index",
    "summarize {texts} --model {model} --json",
    "similarity --model {model} cat dog --json",
    "inspect {model} --json",
]
QUICK = [line for line in QUICK if has_command(line)]


@pytest.fixture
def fill(workshop, model, tmp_path):
    """Fills the places of a command line."""
    texts, masked, new = (tmp_path / name for name in ("texts.txt", "masked.txt", "new"))
    texts.write_text("the cat saw\nthe dög lost\n", encoding="utf-8")
    masked.write_text("the [MASK] ☃\n", encoding="utf-8")
    new.mkdir()
    places = {"workshop": workshop, "model": model, "texts": texts, "masked": masked, "new": new}
    return lambda line: line.format(**places).split()


def test_each_command_is_of_a_kind():
    of_tasks = {f"finetune {name}" for name in (*TASKS, *TEXT_TASKS)}
    assert WRITING | PRINTING.keys() == {
        *("demo", "next-word", "study skip-thought"),
        *(*COMMANDS, *TASKS, *of_tasks),
    }


@pytest.mark.parametrize("name", list(filter(has_command, PRINTING)))
def test_closed_standard_output_is_found_before_work(monkeypatch, capsys, name):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(PRINTING[name].split()) == 2
    assert capsys.readouterr().err == (
        "bertkit: standard output is closed; redirect it to a file\n"
    )


@pytest.mark.parametrize("line", QUICK)
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            2,
            "bertkit: standard output can't be written: No space left on device\n",
        ),
        (BrokenPipeError(), 0, ""),  # its reader went away
    ],
)
def test_standard_output_that_breaks_ends_the_work_with_a_line_at_most(
    monkeypatch, capsys, fill, line, error, code, said
):
    monkeypatch.setattr(sys, "stdout", Broken(error, is_terminal=False))
    assert main(fill(line)) == code
    shown = capsys.readouterr().err
    assert shown.endswith(said)
    assert ("bertkit:" in shown) == bool(said)


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("line", QUICK)
def test_broken_standard_error_changes_nothing(monkeypatch, capsys, fill, line, is_terminal):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Broken(BrokenPipeError(), is_terminal=is_terminal))
    assert main(fill(line)) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("is_terminal", [True, False])
def test_training_without_a_reader_ends_with_all_in_its_log(
    monkeypatch, workshop, tmp_path, is_terminal
):
    monkeypatch.setenv("TERM", "xterm")
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, Broken(BrokenPipeError(), is_terminal=is_terminal))
    assert main(pretrain_words(workshop, tmp_path / "run", steps=2)) == 0
    rows = (tmp_path / "run" / LOG_FILE).read_text(encoding="utf-8")
    assert [json.loads(row)["event"] for row in rows.splitlines()].count("train") == 2
