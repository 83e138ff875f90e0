"""Every command that writes opens its output by one door: locks, links, pipes, own input."""

import os
from pathlib import Path

import pytest
from tests.unit.inference.small import save_small
from tests.wings import has_command, needs

from bertkit.base.output import open_output
from bertkit.cli.app import build_app, list_commands, list_flags
from bertkit.cli.main import main

PLACES = {"output", "svg", "png"}  # flags that name what is written
TEXTS, TABLE, FOLDER = "{folder}/texts.txt", "{folder}/table.csv", "{folder}/corpus"
MODEL, EMPTY, MISSING = "{folder}/model", "{folder}/empty", "{folder}/missing"

TASKS = ("classify", "regress", "tag", "answer", "choose")

# Words of each command, and how the name of its output ends. What it reads need only be there as
# far as it is looked at before the output is; so a model is mostly an empty folder.
FILES = {
    "embed": (f"--model {EMPTY} {TEXTS} --output {{output}}", ".npy"),
    "features": (f"--model {EMPTY} {TEXTS} --output {{output}}", ".jsonl"),
    "translate": (f"{EMPTY} --file {TEXTS} --output {{output}}", ".txt"),
    "report": (f"{MISSING} --output {{output}}", ".html"),
    "review": (f"{TABLE} --model {EMPTY} --output {{output}}", ".csv"),
    "view": (f"words --model {EMPTY} --output {{output}}", ".html"),
    **dict.fromkeys(TASKS, (f"{EMPTY} --file {TABLE} --output {{output}}", ".csv")),
}
FOLDERS = {
    "train-tokenizer": f"{TEXTS} --output {{output}}",
    "convert": f"{MODEL} {{output}}",
    "export": f"{MODEL} --output {{output}}",
}
PAIRS = f"--train {TABLE} --source-column a --target-column b --output {{output}}"
WORKPLACES = {
    "prepare": f"{TEXTS} --tokenizer {MODEL} --output {{output}}",
    "pretrain": f"--data {MISSING} --size tiny --steps 1 --output {{output}}",
    "evaluate": f"{EMPTY} {TABLE} --output {{output}}",
    "embed --workers": f"--model {MODEL} {TEXTS} --output {{output}}",
    "features --workers": f"--model {MODEL} {TEXTS} --output {{output}}",
    "classify --workers": f"{MODEL} --file {TABLE} --output {{output}}",
    "demo": "--output {output}",
    "next-word": f"--data {MISSING} --output {{output}}",
    "study recurrent": "--output {output}",
    "study skip-gram": f"--data {MISSING} --output {{output}}",
    "study skip-thought": f"--data {MISSING} --output {{output}}",
    "finetune translate": PAIRS,
    "finetune summarize": PAIRS,
    **{
        f"finetune {name}": f"--model {EMPTY} --train {TABLE} --output {{output}}" for name in TASKS
    },
    **{
        f"finetune {name}": f"--model {EMPTY} --train {{folder}}/pairs.csv --output {{output}}"
        for name in ("embed", "rerank")
    },
    "finetune classify --seeds": f"--seeds 2 --model {EMPTY} --train {TABLE} --output {{output}}",
}
CASES = [
    *((name, words, ending, False) for name, (words, ending) in FILES.items()),
    *((name, words, "", False) for name, words in FOLDERS.items()),
    *((name, words, "", True) for name, words in WORKPLACES.items()),
]
PRINTING = {
    "devices",
    "attention",
    "fill-mask",
    "generate",
    "inspect",
    "nearest",
    "rerank",
    "score",
    "search",  # SQLite locks the file of an index
    *(f"index {name}" for name in ("add", "update", "delete", "info")),
    "serve",
    "similarity",
    "summarize",
}
CASES = [case for case in CASES if has_command(case[0])]
every_writer = pytest.mark.parametrize(
    ("name", "words", "ending", "is_workplace"), CASES, ids=[case[0] for case in CASES]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("read")
    save_small(folder / "model")
    (folder / "texts.txt").write_text("the cat saw a dog\na dog saw the cat\n")
    columns = "text,label,a,b,question,context,answers,tokens,tags"  # of all tasks
    (folder / "table.csv").write_text(f"{columns}\nthe cat,x,the cat,a dog,a,a,a,a,a\n")
    (folder / "pairs.csv").write_text("query,passage\nthe cat,a dog\na dog,the cat\n")
    (folder / "corpus").mkdir()
    (folder / "empty").mkdir()
    (folder / "corpus" / "texts.txt").write_text("the cat saw a dog\n")
    return folder


@pytest.fixture
def refused(folder, capsys):
    """What a command says of an output that it must refuse."""

    def call(name: str, words: str, output: Path) -> str:
        given = [word.format(folder=folder, output=output) for word in words.split()]
        capsys.readouterr()
        assert main([*name.partition(" --")[0].split(), *given]) == 2
        return capsys.readouterr().err

    return call


def test_every_command_that_writes_is_tested():
    commands = list_commands(build_app())
    tested = {name.partition(" --")[0] for name, *_ in CASES}
    studies = {name for name in commands if name.startswith("study ")}  # of one and the same code
    printing = set(filter(has_command, PRINTING))
    assert tested | printing | studies == commands.keys()
    assert not any(PLACES & list_flags(commands[name]) for name in printing)


@every_writer
def test_a_second_process_is_refused(name, words, ending, is_workplace, refused, tmp_path):
    output = tmp_path / f"output{ending}"
    with open_output(output, "holding", is_workplace=is_workplace) as place:
        before = sorted(tmp_path.rglob("*"))
        told = refused(name, words, place)
        assert "another process is " in told
        assert "wait for it, or name another --" in told
        assert sorted(tmp_path.rglob("*")) == before
    assert list(tmp_path.iterdir()) == []


@every_writer
def test_a_link_to_nothing_is_refused(name, words, ending, is_workplace, refused, tmp_path):
    link = tmp_path / f"link{ending}"
    link.symlink_to(tmp_path / "elsewhere" / f"output{ending}")
    assert "is a link to" in refused(name, words, link)
    assert "is a link to" in refused(name, words, link / f"output{ending}")
    assert list(tmp_path.iterdir()) == [link]


@every_writer
def test_a_pipe_is_refused(name, words, ending, is_workplace, refused, tmp_path):
    os.mkfifo(tmp_path / f"pipe{ending}")
    assert "is a pipe or a device" in refused(name, words, tmp_path / f"pipe{ending}")
    assert [path.name for path in tmp_path.iterdir()] == [f"pipe{ending}"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"train-tokenizer {FOLDER} --output {FOLDER}/tokenizer", "lies in the input"),
        (f"train-tokenizer {FOLDER} --output {FOLDER} --overwrite", "is the input"),
        (f"train-tokenizer {FOLDER}/* --output {FOLDER}/tokenizer", "as part of the input"),
        (f"prepare {FOLDER} --tokenizer {MODEL} --output {FOLDER}/shards", "lies in the input"),
        (f"prepare {TEXTS} --tokenizer {MODEL} --output {{folder}}", "holds the input"),
        (f"pretrain --data {FOLDER} --size tiny --steps 1 --output {FOLDER}/run", "lies in"),
        (f"convert {MODEL} {MODEL}/converted", "lies in the input"),
        (f"convert {MODEL} {MODEL}", "is the input"),
        (f"export {MODEL} --output {MODEL}/onnx", "lies in the input"),
        (
            f"embed --model {MODEL} {FOLDER}/t.jsonl --output {FOLDER}/t.jsonl --overwrite",
            "is the input",
        ),
        (f"features --model {MODEL} {FOLDER}/t.jsonl --output {FOLDER}/t.jsonl", "is the input"),
        (f"features --model {MODEL} {FOLDER} --output {FOLDER}/many", "lies in the input"),
        (f"classify {MODEL} --file {TABLE} --output {{folder}}", "holds the input"),
        pytest.param(
            f"translate {MODEL} --file {TEXTS} --output {TEXTS} --overwrite",
            "is the input",
            marks=needs("decoders"),
        ),
        (f"classify {MODEL} --file {TABLE} --output {TABLE} --overwrite", "is the input"),
        (f"evaluate {MODEL} {FOLDER}/t.jsonl --output {FOLDER} --overwrite", "holds the input"),
        (f"finetune classify --model {MODEL} --train {TABLE} --output {TABLE}", "is the input"),
    ],
)
def test_an_output_and_an_input_that_mix_are_refused(words, message, refused, folder):
    (folder / "corpus" / "t.jsonl").write_text('"the cat"\n')
    name, _, rest = words.partition(" ")
    before = sorted(folder.rglob("*"))
    assert message in refused(name, rest, folder)
    assert sorted(folder.rglob("*")) == before
