"""One cell of `bench_tasks.py`: a fine-tuning run, and what it scores.

    python benchmarks/task_cells.py transformers DATA ENCODER CELL

is how the peer's side is run, in a process of its own; bertkit's side is the command `bertkit`.
"""

import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from minilm import copy_encoder
from program import FOLDER, run_bertkit, run_program
from task_sets import Example, TaskSet, keep_some, list_gold, prepare_set, read_part

# From the paper's grid, the same on both sides; where steps of 32 examples would be few, 16.
EPOCHS = 3
BATCH_SIZES = {"sst2": 32, "cola": 32, "rte": 32, "wnut17": 16, "squad": 16}
PAPER, SENTENCE = "paper", "sentence"
LEARNING_RATES = {PAPER: 5e-5, SENTENCE: 1e-4}
# What `bertkit finetune classify` does with a sentence encoder when it is told nothing.
OF_SENTENCES = ("--pooling", "mean", "--learning-rate", str(LEARNING_RATES[SENTENCE]))


@dataclass(frozen=True)
class Cell:
    """What makes a run.

    `seed` decides all that is random, and which examples are kept: `count`, or all. A `head`
    (linear) is that of a frozen encoder. The recipe paper reads [CLS] through a new head;
    sentence, for classifiers on a sentence encoder, pools its tokens and begins with a solved head.
    """

    set: str
    system: str = "bertkit"
    encoder: str = "minilm"
    seed: int = 0
    count: int | None = None
    head: str | None = None
    recipe: str = PAPER


def read_cell_set(cell: Cell, data: Path, folder: Path) -> TaskSet:
    task_set = prepare_set(data, cell.set, folder)
    return task_set if cell.count is None else keep_some(task_set, cell.count, cell.seed, folder)


def finetune_bertkit(cell: Cell, data: Path, encoder: Path) -> tuple[dict[str, float], str]:
    """Fine-tune and evaluate by the command line; metrics and the command."""
    with tempfile.TemporaryDirectory() as scratch:
        task_set = read_cell_set(cell, data, Path(scratch))
        model, judged = Path(scratch) / "model", Path(scratch) / "judged"
        if cell.recipe == PAPER:
            encoder = copy_encoder(encoder, Path(scratch) / encoder.name)
        words = ["finetune", task_set.task, "--model", encoder, "--output", model]
        words += ["--train", task_set.parts["train"], "--dev", task_set.parts["dev"]]
        words += list_flags(cell, task_set)
        run_bertkit(*words)
        part = task_set.parts[task_set.reported]
        run_bertkit("evaluate", model, part, "--output", judged, "--precision", "fp32")
        examples = read_part(task_set, task_set.reported)
        found = read_answers(task_set, judged, examples)
    from task_metrics import measure

    command = " ".join(Path(word).name for word in map(str, words))
    return measure(task_set.task, list_gold(task_set, examples), found), f"bertkit {command}"


def list_flags(cell: Cell, task_set: TaskSet) -> list[str]:
    flags = list(task_set.flags)
    if cell.recipe == SENTENCE:
        flags += OF_SENTENCES
    elif task_set.task == "classify":
        flags += ["--pooling", "cls"]
    if cell.head is not None:
        flags += ["--features", "last"]
    else:
        flags += ["--batch-size", str(BATCH_SIZES[cell.set])]
        flags += ["--learning-rate", str(LEARNING_RATES[PAPER])] if cell.recipe == PAPER else []
        flags += ["--epochs", str(EPOCHS)] if cell.count is None else []
    return [*flags, "--seed", str(cell.seed), "--precision", "fp32"]


def read_answers(task_set: TaskSet, folder: Path, examples: list[Example]) -> list[Any]:
    """The answers that `bertkit evaluate` wrote, in the form of `list_gold`."""
    if task_set.task == "answer":
        texts = json.loads((folder / "predictions.json").read_text("utf-8"))
        return [texts[example["id"]] for example in examples]
    lines = (folder / "answers.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    if task_set.task == "tag":
        return [[word["tag"] for word in row["words"]] for row in rows]
    return [row["label"] for row in rows]


def run_transformers(cell: Cell, data: Path, encoder: Path) -> tuple[dict[str, float], str]:
    words = ["transformers", data, encoder, json.dumps(asdict(cell))]
    output = run_program(FOLDER / "task_cells.py", *words)
    try:
        metrics: dict[str, float] = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        raise RuntimeError(f"{words[0]} ended without metrics:\n{output[-2000:]}") from None
    return metrics, "transformers Trainer"


def main() -> None:
    from peer_trainer import Recipe, finetune_peer

    _, data, encoder, content = sys.argv[1:]
    cell = Cell(**json.loads(content))
    recipe = Recipe(EPOCHS, BATCH_SIZES[cell.set], LEARNING_RATES[PAPER], cell.seed)
    with tempfile.TemporaryDirectory() as scratch:
        task_set = read_cell_set(cell, Path(data), Path(scratch))
        print(json.dumps(finetune_peer(task_set, Path(encoder), recipe)))


if __name__ == "__main__":
    main()
