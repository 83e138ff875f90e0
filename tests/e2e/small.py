"""A small corpus of our own, and the command line of a small run."""

import random
import shlex
from pathlib import Path

import pytest

from bertkit.cli.main import main

SUBJECTS = ("the cat", "a dog", "my sister", "the old captain", "her friend", "the doctor")
VERBS = ("saw", "found", "followed", "remembered", "painted", "lost")
OBJECTS = ("the red house", "a small boat", "the garden", "an open door", "his hat", "the river")


def write_corpus(path: Path, num_documents: int, seed: int = 0) -> None:
    """Each subject always does the same, so that there is something to learn."""
    choose = random.Random(seed)
    documents = []
    for _ in range(num_documents):
        told = choose.sample(range(len(SUBJECTS)), 2)
        sentences = [
            f"{SUBJECTS[number].capitalize()} {VERBS[number]} {OBJECTS[number]}."
            for number in choose.choices(told, k=choose.randint(4, 9))
        ]
        documents.append("\n".join(sentences))
    path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")


def make_workshop(folder: Path, corpus: str, *, vocab_size: int, held_out: float = 0.1) -> None:
    """Make a tokenizer and shards of a corpus in the folder, and write the sizes of a model."""
    train = f"train-tokenizer {folder}/{corpus} --vocab-size {vocab_size}"
    prepare = f"prepare {folder}/{corpus} --tokenizer {folder}/tokenizer --held-out {held_out}"
    assert main(f"{train} --output {folder}/tokenizer".split()) == 0
    assert main(f"{prepare} --output {folder}/shards --workers 1".split()) == 0
    (folder / "nano.json").write_text(
        '{"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2,'
        ' "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 64}'
    )


def pretrain_words(workshop: Path, output: Path, *more: str, steps: int = 12) -> list[str]:
    """The command line of a small run, by default of both objectives of BERT."""
    objective = [] if {"--objective", "--model"} & {*more} else ["--objective", "bert"]
    words = (
        f"pretrain --data {workshop}/shards --size {workshop}/nano.json --output {output}"
        f" --steps {steps} --batch-size 16 --max-length 32 --learning-rate 5e-3"
        f" --eval-examples 32 --device cpu"
    )
    return [*words.split(), *objective, *more]


def run(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> tuple[str, str]:
    """What a command prints and says, but for the line of where and how it computes."""
    capsys.readouterr()
    assert main([*map(str, words)]) == code
    captured = capsys.readouterr()
    return captured.out, without_precision(captured.err)


def without_precision(error: str) -> str:
    """What a command says on standard error, but for the line of where and how it computes."""
    lines = error.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("computing on "))


def list_suggestions(shown: str) -> list[list[str]]:
    """The words of the commands that are suggested."""
    lines = [line for line in shown.splitlines() if line.startswith("Try: bertkit ")]
    return [shlex.split(line.removeprefix("Try: bertkit ")) for line in lines]
