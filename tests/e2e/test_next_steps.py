"""Each command that makes something ends with the next one to try, which works as it stands.

What a fine-tuned model of each task is tried on is in `test_predict.py`.
"""

import json
import shlex

import pytest
from tests.e2e.small import list_suggestions, pretrain_words
from tests.e2e.test_documented_commands import find_problem

from bertkit.cli.main import main
from bertkit.tasks.table import TASKS


def follow(capsys, *words: object) -> list[str]:
    """Run a command and the one that it suggests, and return the words of that one."""
    capsys.readouterr()
    assert main([*map(str, words)]) == 0
    shown = capsys.readouterr()
    (suggestion,) = list_suggestions(shown.out + shown.err)
    short = shlex.join(suggestion).replace("--minutes 10", "--steps 1 --batch-size 4")
    assert main(shlex.split(short)) == 0, capsys.readouterr().err
    return suggestion


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Work where a suggested output may be written."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("task", "command"), [("embed", "search"), ("rerank", "rerank")])
def test_a_model_of_passages_is_tried_on_those_it_learned_from(
    task, command, model, tmp_path, capsys
):
    words = ("cat", "dog", "hat", "fox", "door", "river")
    rows = [f"the {one},a {one} saw the {one},the {other}" for one in words for other in words[:2]]
    train = tmp_path / "pairs.csv"
    train.write_text("\n".join(["query,passage,negative", *dict.fromkeys(rows)]))
    line = f"finetune {task} --train {train} --output made --model {model} --epochs 1"
    suggestion = follow(capsys, *line.split(), "--max-length", 20, "--negatives", "file")
    assert suggestion[0] == command
    assert suggestion[-3:] == [str(train), "--text-column", "passage"]


# The command → what it is followed by.
MAKERS = {
    "train-tokenizer {w}/corpus.txt --vocab-size 120 --output {o}": "prepare",
    "prepare {w}/corpus.txt --tokenizer {w}/tokenizer --output {o} --workers 1": "pretrain",
    "embed --model {m} {w}/corpus.txt --output {o}.npy --max-length 16": "search",
    "embed --model {m} {w}/corpus.txt --output {o}/ --max-length 16": "search",
    "features --model {m} {w}/corpus.txt --output {o}.parquet --max-length 16": "similarity",
    "convert {m} {o}": "inspect",
    "export {m} --output {o}": "inspect",
}


@pytest.mark.parametrize("line", MAKERS)
def test_what_makes_something_says_what_to_try_next(line, workshop, model, tmp_path, capsys):
    for name in ("shards", "run"):  # others work there, so that the suggestion avoids them
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.txt").write_text("mine")
    places = {"w": workshop, "m": model, "o": tmp_path / "made of it"}
    suggestion = follow(capsys, *(word.format(**places) for word in line.split()))
    assert suggestion[0] == MAKERS[line]
    if suggestion[0] in {"search", "similarity"}:
        text = next(word for word in suggestion if " " in word)
        assert text in (workshop / "corpus.txt").read_text()
    else:
        assert any("made of it" in word for word in suggestion)


SENTENCES = ("Der Film war gut.", "Das Buch war zu lang.", "Ein Essen ohne Salz.", "Sie kam nicht.")
ROWS = [{"text": one, "label": one[-2]} for one in SENTENCES]


def write_rows(folder, ending: str, rows) -> str:
    path = folder / f"meine Zeilen{ending}"
    lines = [json.dumps(row) for row in rows]
    if ending == ".csv":
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def finetune_words(task: str, model: str, train: str, output) -> list[str]:
    words = ["finetune", task, "--model", model, "--train", train, "--output", str(output)]
    return [*words, "--epochs", "1", "--max-length", "16"]


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_a_model_of_pairs_is_tried_on_a_pair(task, model, tmp_path, capsys):
    rows = [
        {"sentence1": one, "sentence2": "-2 Grad" if one == SENTENCES[0] else "Nein!", "label": at}
        for at, one in enumerate(SENTENCES)
    ]
    train, made = write_rows(tmp_path, ".jsonl", rows * 5), tmp_path / "made"
    suggestion = follow(capsys, *finetune_words(task, model, train, made))
    # The second text of the first row would be read as a flag.
    assert suggestion == [task, str(made), SENTENCES[1], "--pair", "Nein!"]
    suggestion = follow(capsys, "evaluate", made, train)
    assert suggestion == ["evaluate", str(made), train, "--output", "evaluation"]
    suggestion = follow(capsys, "evaluate", made, train, "--output", tmp_path / "other")
    assert suggestion == [task, str(made), SENTENCES[1], "--pair", "Nein!"]


def test_the_next_command_reads_the_same_column(workshop, tmp_path, capsys):
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"body": "the cat sat on it all day. it slept.", "id": 1}\n' * 9)
    words = ["train-tokenizer", str(texts), "--text-column", "body", "--vocab-size", "60"]
    suggestion = follow(capsys, *words, "--output", tmp_path / "made")
    assert suggestion[suggestion.index("--text-column") + 1] == "body"


def test_many_files_are_suggested_as_a_glob_that_leaves_out_others(tmp_path, capsys):
    (tmp_path / "books").mkdir()
    for number in range(4):
        (tmp_path / "books" / f"{number}.txt").write_text(f"cat {number} sat there.\n" * 9)
    (tmp_path / "books" / "labels.csv").write_text("text,label\n")
    books = sorted(map(str, (tmp_path / "books").glob("*.txt")))
    words = ["train-tokenizer", *books, "--vocab-size", "40", "--output", tmp_path / "made"]
    assert follow(capsys, *words)[1] == f"{tmp_path}/books/*.txt"


def test_an_evaluation_is_suggested_with_its_columns(model, workshop, tmp_path, capsys):
    train, made = write_rows(tmp_path, ".csv", ROWS * 5), tmp_path / "made"
    assert main(finetune_words("classify", model, train, made)) == 0
    test = tmp_path / "test.csv"
    test.write_text("body;label\na good cat;t\na bad cat;g\n")
    options = ("--text-column", "body", "--engine", "torch")
    suggestion = follow(capsys, "evaluate", made, test, *options)
    assert suggestion == ["evaluate", str(made), str(test), *options, "--output", "evaluation"]


def test_a_long_text_is_cut_and_one_without_a_space_too(model, tmp_path, capsys):
    rows = [{"text": "the cat saw " * 30, "label": 0}, {"text": "the" + "字" * 300, "label": 1}]
    made = tmp_path / "made"
    train = write_rows(tmp_path, ".jsonl", rows * 5)
    suggestion = follow(capsys, *finetune_words("classify", model, train, made))
    assert suggestion == ["classify", str(made), "the" + "字" * 57]


def test_nothing_leads_on_while_parts_are_missing(model, tmp_path, capsys):
    for name in "abcd":
        (tmp_path / f"{name}.txt").write_text(f"the {name}\n")
    words = ["embed", "--model", model, str(tmp_path / "*.txt"), "--output", f"{tmp_path}/made/"]
    assert main([*words, "--shard", "0/2"]) == 0
    shown = capsys.readouterr()
    assert "missing" in shown.out + shown.err
    assert list_suggestions(shown.out + shown.err) == []


def test_a_program_that_reads_the_result_is_told_nothing(workshop, tmp_path, capsys):
    line = f"train-tokenizer {workshop}/corpus.txt --vocab-size 120 --output {tmp_path}/t --json"
    assert main(line.split()) == 0
    shown = capsys.readouterr()
    assert list_suggestions(shown.out + shown.err) == []


@pytest.mark.parametrize(
    ("objective", "command"), [("bert", "fill-mask --model"), ("causal", "generate")]
)
def test_a_pretrained_model_is_tried_by_what_it_learned(
    objective, command, workshop, tmp_path, capsys
):
    words = pretrain_words(workshop, tmp_path / "run", "--objective", objective, steps=1)
    suggestion = follow(capsys, *words)
    *words, model, text = suggestion
    assert (words, model) == (command.split(), str(tmp_path / "run"))
    known, unmasked = (workshop / "corpus.txt").read_text().lower(), text.split("[MASK]")
    assert all(part.strip(" .") in known for part in unmasked)
    assert len(unmasked) == (2 if "fill-mask" in command else 1)


@pytest.mark.parametrize(
    ("kind", "line", "given"),
    [
        ("translate", "--train {t}", ["the cat 0 sat"]),
        ("translate", "--train {s} {s}", ["the cat 0 sat"]),
        ("summarize", "--train {t}", ["{t}", "--text-column", "text"]),
        ("summarize", "--train {s} {s}", ["{s}"]),
    ],
)
def test_a_model_that_writes_is_tried_on_what_it_learned_from(kind, line, given, tmp_path, capsys):
    texts = [f"the cat {number} sat" for number in range(12)]
    left, right = ("source", "target") if kind == "translate" else ("text", "summary")
    table, lines = tmp_path / "pairs.jsonl", tmp_path / "lines.txt"
    table.write_text("".join(json.dumps({left: one, right: one}) + "\n" for one in texts))
    lines.write_text("\n".join(texts) + "\n")
    places = {"t": table, "s": lines}
    size = "--epochs 1 --vocab-size 64 --size 1x32"
    words = f"finetune {kind} {line.format(**places)} --output {tmp_path}/made {size}".split()
    given = [word.format(**places) for word in given]
    model = f"{tmp_path}/made"
    expected = [model, *given] if kind == "translate" else [*given, "--model", model]
    assert follow(capsys, *words) == [kind, *expected]


@pytest.mark.parametrize("name", TASKS)
def test_the_example_of_each_task_can_be_tried(name):
    assert find_problem([name, "model/", *shlex.split(TASKS[name].inputs.example)]) is None
