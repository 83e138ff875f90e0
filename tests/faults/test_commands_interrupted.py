"""Commands that are killed or interrupted wherever they touch the disk: the same bytes come out.

`BERTKIT_NUM_KILLS` says at how many places, a twentieth of it and the last one for each command.
"""

import json
import random
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.e2e.small import write_corpus
from tests.faults.children import NUM_KILLS, SEED, run_child
from tests.faults.command_child import carry_out
from tests.faults.disk import Tree, read_tree
from tests.faults.prepare_child import Errand, Place
from tests.unit.inference.small import WORDS
from tests.unit.recipes.finetune.small import save_model, write_tables
from tests.unit.recipes.seq2seq.small import make_pairs, write_files

from bertkit.cli.main import main

TUNING = "--max-length 24 --batch-size 8 --dropout 0 --learning-rate 1e-2 --device cpu"
WRITING = (
    "--steps 4 --eval-every 2 --checkpoint-every 1 --average 1 --layers 1 --hidden-size 16"
    " --heads 2 --vocab-size 64 --tokens-per-batch 64 --max-source-length 16"
    " --max-target-length 16 --eval-pairs 2 --device cpu"
)
CLASSIFY = "finetune classify --model {0}/model --train {0}/dev.csv --dev {0}/dev.csv"
COMMANDS = {
    "answer": "finetune answer --model {0}/model --train {0}/squad.json --dev {0}/squad.json"
    f" --output {{1}} --epochs 1 --max-question-length 6 --doc-stride 4 {TUNING}",
    "translate": "finetune translate --train {0}/train.en {0}/train.de --dev {0}/dev.en"
    f" {{0}}/dev.de --output {{1}} {WRITING}",
    "summarize": f"finetune summarize --train {{0}}/pairs.jsonl --output {{1}} {WRITING}",
    "seeds": f"{CLASSIFY} --output {{1}} --epochs 1 --seeds 2 {TUNING}",
    "search": f"{CLASSIFY} --output {{1}} --search paper --max-length 24 --dropout 0 --device cpu",
    "study": "study steps --data {0}/shards --output {1} --device cpu --seeds 1",
    "npy": "embed {0}/model {0}/texts.txt --output {1}.npy --engine torch",
    "jsonl": "embed {0}/model {0}/texts.txt --output {1}.jsonl --engine torch",
    "features": "features {0}/model {0}/texts.txt --output {1}.parquet --engine torch",
    "report": "report {0}/trained --output {1}.html --no-examples",
    "convert": "convert {0}/model {1}",
    "train-tokenizer": "train-tokenizer {0}/texts.txt --vocab-size 60 --output {1} --overwrite",
    "view": "view {0}/model cat --output {1}.html",
}
# They say that their output is there, where it was finished and only the end was not.
REFUSE_WHAT_IS_WHOLE = {"convert", "features", "report", "view"}
INTERRUPTED, STOPPED, REFUSED = 130, 75, 2
OUTPUT = "made"
# What no two runs share: clocks, and the folder in which they are.
CLOCKS = {"log.jsonl", "training.json"}
STUDY = {"settings.json", "result.json", "run_state.json", "manifest.json"}
STUDY |= {"study.json", "report.html", "table.md"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the commands read."""
    folder = tmp_path_factory.mktemp("commands")
    save_model(folder / "model")
    write_tables(folder)
    write_files(folder)
    pairs = [{"text": source, "summary": target} for source, target in make_pairs(24, 1)]
    (folder / "pairs.jsonl").write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    (folder / "squad.json").write_text(json.dumps({"data": [{"paragraphs": make_questions()}]}))
    choose = random.Random(0)
    texts = [" ".join(choose.choices(WORDS[:7], k=5)) for _ in range(20)]
    (folder / "texts.txt").write_text("\n".join(texts))
    write_corpus(folder / "corpus.txt", 120)
    shards = "--output {0}/shards --held-out 0.3 --workers 1"
    sizes = "--steps 2 --batch-size 4 --max-length 32 --eval-sequences 4 --device cpu"
    for words in (
        "train-tokenizer {0}/corpus.txt --vocab-size 120 --output {0}/tokenizer",
        f"prepare {{0}}/corpus.txt --tokenizer {{0}}/tokenizer {shards}",
        f"pretrain --data {{0}}/shards --model tiny --output {{0}}/trained {sizes}",
    ):
        assert main(words.format(folder).split()) == 0
    return folder


def make_questions() -> list[dict[str, object]]:
    context = "the cat saw a dog . the dog lost the hat"
    return [
        {
            "context": context,
            "qas": [
                {
                    "id": str(number),
                    "question": question,
                    "answers": [{"text": text, "answer_start": context.index(text)}],
                }
            ],
        }
        for number, (question, text) in enumerate([("a cat", "the cat"), ("a dog", "the hat")] * 4)
    ]


def make_errand(name: str, folder: Path, place: Path) -> Errand:
    place.mkdir()
    words = COMMANDS[name].format(folder, place / OUTPUT)
    return Errand(words=words.split(), output=place, trace=place.with_suffix(".trace"))


def read_result(errand: Errand) -> dict[str, bytes]:
    """All that a command wrote but for clocks and locks."""

    def walk(tree: Tree, path: Path) -> Iterator[tuple[str, bytes]]:
        for name, node in tree.items():
            if isinstance(node, dict) and name != "tensorboard":
                yield from walk(node, path / name)
            elif not isinstance(node, dict) and not name.endswith(".lock"):
                yield str(path / name), node

    return dict(walk(read_tree(errand.output), Path()))


def list_differences(name: str, expected: dict[str, bytes], found: dict[str, bytes]) -> list[str]:
    """Files that are missing, too many, or not as they must be."""
    may_differ = CLOCKS | (STUDY if name == "study" else set())
    return sorted(found.keys() ^ expected.keys()) + sorted(
        path
        for path in found.keys() & expected.keys()
        if found[path] != expected[path] and Path(path).name not in may_differ
    )


def read_places(errand: Errand) -> list[Place]:
    fields = [line.split("\t") for line in errand.trace.read_text().splitlines()]
    return [Place(int(number), operation, file) for number, operation, file in fields]


def choose_stops(places: list[Place]) -> list[tuple[Place, signal.Signals]]:
    """The end of the work, where most commands leave something behind, and places at random."""
    choose = random.Random(SEED)
    chosen = choose.sample(places[:-1], min(len(places) - 1, max(2, NUM_KILLS // 20)))
    kinds = [signal.SIGKILL, signal.SIGINT]
    return [(places[-1], signal.SIGKILL)] + [
        (place, kinds[number % 2]) for number, place in enumerate(chosen)
    ]


def find_litter(errand: Errand) -> list[str]:
    """What an interrupted command may not leave; the lock of a run stays in its folder."""
    paths = [path for path in errand.output.rglob("*") if "checkpoints" not in path.parts]
    return [
        str(path.relative_to(errand.output))
        for path in paths
        if path.name.endswith((".partial", ".lock")) and path.name != ".lock"
    ]


def find_problem(
    name: str, errand: Errand, place: Place, sent: signal.Signals, expected: dict[str, bytes]
) -> str:
    """Stop at a place, let the command be done, and say what isn't as it must be."""
    code = run_child(carry_out, replace(errand, number=place.number, sent=sent))
    if sent == signal.SIGINT:
        messages = errand.trace.with_suffix(".messages").read_text()
        litter = find_litter(errand)
        if code not in (0, INTERRUPTED, STOPPED) or litter or "Traceback" in messages:
            return f"exit code {code}, it left {litter}: {messages}"
    elif code != -signal.SIGKILL:
        return f"exit code {code}"
    is_whole = read_result(errand) == expected
    code = run_child(carry_out, errand)
    if code and not (name in REFUSE_WHAT_IS_WHOLE and is_whole and code == REFUSED):
        return f"the same command ended with {code}"
    return ", ".join(list_differences(name, expected, read_result(errand)))


@pytest.mark.parametrize("name", COMMANDS)
def test_stopped_anywhere_the_same_command_comes_to_the_same(name, folder, tmp_path):
    whole = make_errand(name, folder, tmp_path / "whole")
    assert run_child(carry_out, whole) == 0, whole.trace.with_suffix(".messages").read_text()
    expected, problems = read_result(whole), []
    for number, (place, sent) in enumerate(choose_stops(read_places(whole))):
        errand = make_errand(name, folder, tmp_path / str(number))
        if problem := find_problem(name, errand, place, sent, expected):
            problems.append(f"{place}, {sent.name}: {problem}")
    assert not problems, f"seed {SEED}: " + "\n".join(problems)
