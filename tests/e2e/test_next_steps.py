"""Each command that makes something ends with the next one to try, which the program accepts."""

import shlex

import pytest
from tests.e2e.small import pretrain_words
from tests.e2e.test_documented_commands import find_problem

from bertkit.cli.main import main
from bertkit.tasks.table import TASKS


def list_suggestions(shown: str) -> list[list[str]]:
    lines = [line for line in shown.splitlines() if line.startswith("Try: bertkit ")]
    return [shlex.split(line.removeprefix("Try: bertkit ")) for line in lines]


def write_rows(workshop):
    train = workshop / "mood of cats.csv"
    rows = [f"a {mood} cat,{mood}" for mood in ("good", "bad")] * 10
    train.write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    return train


# The command → what it is followed by.
MAKERS = {
    "train-tokenizer {w}/corpus.txt --vocab-size 120 --output {o}": "prepare",
    "prepare {w}/corpus.txt --tokenizer {w}/tokenizer --output {o} --workers 1": "pretrain",
    "finetune classify --model {m} --train {t} --output {o} --epochs 1 --max-length 12": "classify",
    "embed {m} {w}/corpus.txt --output {o}.npy": "search",
    "features {m} {w}/corpus.txt --output {o}.parquet": "similarity",
    "convert {m} {o}": "inspect",
}


@pytest.mark.parametrize("line", MAKERS)
def test_what_makes_something_says_what_to_try_next(line, workshop, model, tmp_path, capsys):
    places = {"w": workshop, "m": model, "o": tmp_path / "made of it", "t": write_rows(workshop)}
    words = [word.format(**places) for word in line.split()]
    assert main(words) == 0
    shown = capsys.readouterr()
    (suggestion,) = list_suggestions(shown.out + shown.err)
    assert suggestion[0] == MAKERS[line]
    assert find_problem(suggestion) is None
    assert any("made of it" in word for word in suggestion) or suggestion[0] in {
        "search",  # in the texts that were embedded
        "similarity",
    }


def test_the_next_command_reads_the_same_column(workshop, tmp_path, capsys):
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"body": "the cat sat", "id": 1}\n' * 9)
    words = ["train-tokenizer", str(texts), "--text-column", "body", "--vocab-size", "30"]
    assert main([*words, "--output", str(tmp_path / "made")]) == 0
    (suggestion,) = list_suggestions(capsys.readouterr().err)
    assert suggestion[suggestion.index("--text-column") + 1] == "body"
    assert find_problem(suggestion) is None


def test_an_evaluation_is_suggested_with_its_columns(model, workshop, tmp_path, capsys):
    train, made = write_rows(workshop), tmp_path / "made"
    words = ["finetune", "classify", "--model", str(model), "--train", str(train)]
    assert main([*words, "--output", str(made), "--epochs", "1", "--max-length", "12"]) == 0
    rows = tmp_path / "test.csv"
    rows.write_text("body;label\na good cat;good\na bad cat;bad\n")
    capsys.readouterr()
    assert main(["evaluate", str(made), str(rows), "--text-column", "body"]) == 0
    (suggestion,) = list_suggestions(capsys.readouterr().err)
    assert suggestion[:3] == ["evaluate", str(made), str(rows)]
    assert "--text-column" in suggestion
    assert find_problem(suggestion) is None


def test_a_program_that_reads_the_result_is_told_nothing(workshop, tmp_path, capsys):
    line = f"train-tokenizer {workshop}/corpus.txt --vocab-size 120 --output {tmp_path}/t --json"
    assert main(line.split()) == 0
    shown = capsys.readouterr()
    assert list_suggestions(shown.out + shown.err) == []


@pytest.mark.parametrize(("objective", "command"), [("bert", "fill-mask"), ("causal", "generate")])
def test_a_pretrained_model_is_tried_by_what_it_learned(
    objective, command, workshop, tmp_path, capsys
):
    words = pretrain_words(workshop, tmp_path / "run", "--objective", objective, steps=1)
    assert main(words) == 0
    (suggestion,) = list_suggestions(capsys.readouterr().out)
    assert suggestion[:2] == [command, str(tmp_path / "run")]
    assert find_problem(suggestion) is None


@pytest.mark.parametrize("name", TASKS)
def test_the_example_of_each_task_can_be_tried(name):
    assert find_problem([name, "model/", *shlex.split(TASKS[name].inputs.example)]) is None
