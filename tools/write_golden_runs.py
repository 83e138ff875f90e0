"""Write tests/golden/runs: training runs that were stopped midway, and how they end.

python tools/write_golden_runs.py                  writes all of them anew

A folder has the data of a run, `arguments.json` with its command, `output` as the run was stopped,
and `expected` as it ends if nothing stops it: the weights, and the rows of the log. A later version
resumes `output` and must come to the same end. Write them anew only if a change of results is
meant: a resumed run proves nothing about the version that wrote it.
"""

import json
import os
import shutil
import signal
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from bertkit.checkpoints.run_folder import RUN_FOLDER, list_checkpoints
from bertkit.cli.main import main as run_command
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.log import CLOCK_FIELDS, read_log
from bertkit.training.step import StepResult, take_step

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "golden" / "runs"
NUM_STEPS, STOPPED_AFTER = 8, 5
SUBJECTS = ("the cat", "a dog", "the old man", "a small bird")
VERBS = ("sees", "finds", "loves")
OBJECTS = ("the house", "a tree", "the river", "the red ball")
GERMAN = {
    "the": "die", "a": "eine", "old": "alte", "small": "kleine", "red": "rote", "cat": "Katze",
    "dog": "Dogge", "man": "Person", "bird": "Amsel", "sees": "sieht", "finds": "findet",
    "loves": "liebt", "house": "Villa", "tree": "Tanne", "river": "Elbe", "ball": "Kugel",
}  # fmt: skip
SIZES: dict[str, Any] = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
    "initializer_range": 0.2,
}
# Of Adam a large epsilon, so that what is rounded otherwise on another processor stays small.
SHARED = "--device cpu --precision fp32 --keep 1 --adam-epsilon 1e-2 --eval-every 4"
RUNS = {
    "pretrain": f"pretrain --data shards --output output --size config.json --steps {NUM_STEPS}"
    " --max-length 16 --long-length 24 --long-share 0.25 --batch-size 4 --accumulate 2"
    f" --recipe paper --learning-rate 1e-2 --eval-examples 8 {SHARED}",
    "finetune": "finetune classify --train train.csv --dev dev.csv --model model --output output"
    f" --max-length 16 --epochs 2 --batch-size 4 --accumulate 2 --learning-rate 1e-2"
    f" --layer-decay 0.9 --metric loss {SHARED}",
    "seq2seq": "finetune translate --train train.en train.de --dev dev.en dev.de --output output"
    f" --steps {NUM_STEPS} --size config.json --vocab-size 120 --average 2"
    " --tokens-per-batch 60 --max-length 32 --max-tokens 32 --eval-examples 2"
    f" --accumulate 2 --metric loss --learning-rate 1e-2 {SHARED}",
}


def list_sentences() -> list[str]:
    """List every subject with every verb and every object, in an order that mixes them."""
    texts = [f"{who} {does} {what}" for who in SUBJECTS for does in VERBS for what in OBJECTS]
    return [texts[(7 * number) % len(texts)] for number in range(len(texts))]


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write a file of lines."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def save_tokenizer(folder: Path) -> Tokenizer:
    """Write a tokenizer whose vocabulary has all English words."""
    tokenizer = Tokenizer([*SPECIAL_TOKENS, ".", *GERMAN])
    tokenizer.save(folder)
    return tokenizer


def write_pretrain() -> None:
    """Write a config and shards."""
    write_lines(Path("config.json"), [json.dumps({**SIZES, "type_vocab_size": 2}, indent=2)])
    texts = list_sentences()
    documents = [texts[start : start + 6] for start in range(0, len(texts), 6)]
    write_lines(Path("text.txt"), ["\n".join([*lines, ""]) for lines in documents])
    save_tokenizer(Path("tokenizer"))
    prepare = "prepare text.txt --tokenizer tokenizer --output shards --sentences lines"
    check(run_command(f"{prepare} --held-out 0.3".split()))
    shutil.rmtree("tokenizer")
    for name in ("text.txt", "shards/plan.json"):
        Path(name).unlink()


def write_finetune() -> None:
    """Write a model with random weights, and tables of labeled sentences."""
    torch.manual_seed(0)
    tokenizer = save_tokenizer(Path("model"))
    model = BertForPreTraining(BertConfig(vocab_size=tokenizer.vocab_size, **SIZES))
    model.save_pretrained(Path("model"))
    rows = [f"{text},{'feline' if 'cat' in text else 'other'}" for text in list_sentences()]
    write_lines(Path("train.csv"), ["text,label", *rows[:16]])
    write_lines(Path("dev.csv"), ["text,label", *rows[16:24]])


def write_seq2seq() -> None:
    """Write a config, and English sentences and their words in German."""
    names = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")
    sizes = {name: SIZES[name] for name in names} | {"num_hidden_layers": 1}
    write_lines(Path("config.json"), [json.dumps(sizes, indent=2)])
    texts = list_sentences()
    for name, chosen in (("train", texts[:30]), ("dev", texts[30:36])):
        write_lines(Path(f"{name}.en"), chosen)
        translated = [" ".join(GERMAN[word] for word in text.split()) for text in chosen]
        write_lines(Path(f"{name}.de"), translated)


INPUT_WRITERS = {"pretrain": write_pretrain, "finetune": write_finetune, "seq2seq": write_seq2seq}


def check(code: int, expected: int = 0) -> None:
    """Raise if a command ended otherwise than expected."""
    if code != expected:
        raise SystemExit(f"a command ended with {code}; expected {expected}")


def stop(words: Sequence[str]) -> None:
    """Run a command, and stop it in a step with a signal."""

    def take(*values: Any) -> StepResult:
        if values[2] == STOPPED_AFTER - 1:
            signal.raise_signal(signal.SIGTERM)
        return take_step(*values)

    with patch("bertkit.training.loop.take_step", take):
        check(run_command(words), expected=75)


def run_folder() -> Path:
    """Return the folder of the run, which for pre-training is the output itself."""
    nested = Path("output", RUN_FOLDER)
    return nested if nested.exists() else Path("output")


def keep_end() -> None:
    """Keep the weights and the log of a finished run in `expected`, and remove the run."""
    run = run_folder()
    model = Path("output") if run != Path("output") else list_checkpoints(run)[-1]
    Path("expected").mkdir()
    shutil.copy(model / "model.safetensors", "expected/model.safetensors")
    rows = [
        {name: value for name, value in row.items() if name not in CLOCK_FIELDS}
        for row in read_log(run / "log.jsonl")
    ]
    write_lines(Path("expected/log.jsonl"), [json.dumps(row) for row in rows])
    shutil.rmtree("output")


def main() -> None:
    """Write all runs anew."""
    torch.set_num_threads(2)
    for name, command in RUNS.items():
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        (FOLDER / name).mkdir(parents=True)
        with chdir(FOLDER / name):
            INPUT_WRITERS[name]()
            write_lines(Path("arguments.json"), [json.dumps(command.split())])
            check(run_command(command.split()))
            keep_end()
            stop(command.split())
            shutil.rmtree(run_folder() / "tensorboard")
        for lock in (FOLDER / name).rglob(".lock"):
            lock.unlink()


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    main()
