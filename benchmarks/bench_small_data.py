"""What models learn from few rows: `bertkit finetune` at its defaults beside three other ways.

    python benchmarks/bench_small_data.py --sets sst2 cola rte --counts 50 300 1000 --seeds 3

Each seed draws its own rows of the training part; `finetune` holds out a tenth of them itself. The
four ways, all with all-MiniLM-L6-v2:

- `default`: `bertkit finetune classify --model encoder/ --train rows --output model/`, whose
  defaults are given as flags, so that this is measured whatever they become: the mean of the
  tokens, a solved head, then 3 epochs at 1e-4;
- `linear`: the same with `--features linear`;
- `paper`: the same on the encoder without its sentence-transformers files: [CLS], a random head, a
  learning rate of 3e-5, up to 20 epochs;
- `regression`: scikit-learn's logistic regression on the vectors of `Embedder`; of pairs, on the
  absolute difference and the product of both vectors.

Figures are accuracies on the test part, or on dev where there is none; the seconds are those of the
whole command. A cell that `--output` has isn't run again.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from bertkit import Embedder, EmbedderSettings
from minilm import MINILM, copy_encoder, find_minilm
from program import build_parser, describe_machine, run_bertkit
from task_cells import OF_SENTENCES
from task_sets import TaskSet, keep_some, prepare_set, read_part

CHOICES = ("sst2", "cola", "rte")
WAYS = ("default", "linear", "paper", "regression")
IN_FP32 = ("--precision", "fp32")
FLAGS = {
    "default": (*OF_SENTENCES, "--epochs", "3"),
    "linear": ("--pooling", "mean", "--features", "linear"),
    "paper": ("--pooling", "cls", "--learning-rate", "3e-5"),
}


@dataclass(frozen=True)
class Cell:
    """One model.

    Attributes:
        set: a key of `task_sets.SETS`.
        count: training rows.
        seed: draws the rows.
        way: one of `WAYS`.
    """

    set: str
    count: int
    seed: int
    way: str


def main() -> None:
    """Run what is missing, and print the table."""
    parser = build_parser(__doc__, "small_data.jsonl")
    parser.add_argument("--sets", nargs="+", default=CHOICES, choices=CHOICES)
    parser.add_argument("--counts", nargs="+", type=int, default=[50, 300, 1000])
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    rows = read_rows(given.output)
    cells = [
        Cell(name, count, seed, way)
        for seed in range(given.seeds)
        for name in given.sets
        for count in given.counts
        for way in given.ways
    ]
    done = {tuple(row["cell"].values()) for row in rows}
    for cell in cells:
        if tuple(asdict(cell).values()) in done:
            continue
        started = time.monotonic()
        accuracy = run_cell(cell, given.data)
        seconds = round(time.monotonic() - started, 1)
        row = {"cell": asdict(cell), "accuracy": accuracy, "seconds": seconds}
        given.output.parent.mkdir(parents=True, exist_ok=True)
        with given.output.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({**row, "machine": describe_machine()}) + "\n")
        print(f"{cell}: {accuracy:.4f} in {seconds:.1f} s", flush=True)
    show(read_rows(given.output))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows that are there."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def run_cell(cell: Cell, data: Path) -> float:
    """Learn and evaluate; the accuracy."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        task_set = keep_some(prepare_set(data, cell.set, folder), cell.count, cell.seed, folder)
        if cell.way == "regression":
            return regress(task_set)
        encoder = find_minilm()
        if cell.way == "paper":
            encoder = copy_encoder(encoder, folder / "encoder")
        columns = [f"--{name.replace('_', '-')}={it}" for name, it in task_set.columns.items()]
        words = ["--model", encoder, "--seed", cell.seed, *columns, *FLAGS[cell.way], *IN_FP32]
        files = ["--train", task_set.parts["train"], "--output", folder / "model"]
        run_bertkit("finetune", task_set.task, *words, *files)
        words = [folder / "model", task_set.parts[task_set.reported], *columns, *IN_FP32]
        found = json.loads(run_bertkit("evaluate", *words, "--json"))
        accuracy: float = found["metrics"]["accuracy"]
        return accuracy


def regress(task_set: TaskSet) -> float:
    """The accuracy of logistic regression on vectors."""
    embedder = Embedder.load(
        find_minilm(), EmbedderSettings(precision="fp32", **MINILM), device="cpu"
    )
    train, judged = (read_part(task_set, part) for part in ("train", task_set.reported))
    columns = list(task_set.columns.values()) or ["text"]

    def vectors(examples: Sequence[dict[str, str]]) -> npt.NDArray[np.float32]:
        first, *second = (embedder([one[name] for one in examples]) for name in columns)
        if not second:
            return np.asarray(first)
        return np.concatenate([np.abs(first - second[0]), first * second[0]], axis=1)

    model = LogisticRegression(max_iter=1000)
    model.fit(vectors(train), [one["label"] for one in train])
    return float(model.score(vectors(judged), [one["label"] for one in judged]))


def show(rows: list[dict[str, Any]]) -> None:
    """Print medians, with the least and the greatest."""
    groups: dict[tuple[str, int], dict[str, list[float]]] = {}
    for row in rows:
        cell = row["cell"]
        group = groups.setdefault((cell["set"], cell["count"]), {})
        group.setdefault(cell["way"], []).append(100 * row["accuracy"])
    print(f"| set | rows | draws | {' | '.join(WAYS)} |")
    print(f"| --- | ---: | ---: |{' ---: |' * len(WAYS)}")
    for (name, count), ways in sorted(groups.items()):
        shown = [
            f"{statistics.median(found):.1f} ({min(found):.1f}–{max(found):.1f})"
            if (found := ways.get(way))
            else ""
            for way in WAYS
        ]
        num_draws = max(map(len, ways.values()))
        print(f"| {name} | {count:,} | {num_draws} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
