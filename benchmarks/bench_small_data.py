"""What models learn from few rows: `bertkit finetune` at its defaults beside three other ways.

    python benchmarks/bench_small_data.py --sets sst2 cola rte --counts 50 300 1000 --seeds 3

Each seed draws its own rows of the training part; `finetune` holds out a tenth of them itself. The
four ways, all with all-MiniLM-L6-v2:

- `default`: `bertkit finetune classify --model encoder/ --train rows --output model/`, whose
  defaults are given as flags, so that this is measured whatever they become: the mean of the
  tokens, a solved head, then 3 epochs at 1e-4;
- `linear`: the same with `--features last`;
- `paper`: the same on the encoder without its sentence-transformers files: [CLS], a random head, a
  learning rate of 3e-5, up to 20 epochs;
- `regression`: scikit-learn's logistic regression on the vectors of `Embedder`; of pairs, on the
  absolute difference and the product of both vectors.

Figures are accuracies on the test part, or on dev where there is none; the seconds are those of the
whole command. A cell that `--output` has isn't run again.
"""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from cells import Cells, Row, choose, show_spread
from devices import Place
from embedding_peers import load_embedder
from minilm import copy_encoder, find_minilm
from program import build_parser, run_bertkit
from task_cells import OF_SENTENCES
from task_sets import TaskSet, keep_some, prepare_set, read_part
from turns import begin_table, format_row

CHOICES = ("sst2", "cola", "rte")
WAYS = ("default", "linear", "paper", "regression")
IN_FP32 = ("--precision", "fp32")
FLAGS = {
    "default": (*OF_SENTENCES, "--epochs", "3"),
    "linear": ("--pooling", "mean", "--features", "last"),
    "paper": ("--pooling", "cls", "--learning-rate", "3e-5"),
}


@dataclass(frozen=True)
class Cell:
    """One model; `seed` draws the training rows, `count` of them."""

    set: str
    count: int
    seed: int
    way: str


def main() -> None:
    parser = build_parser(__doc__, "small_data.jsonl")
    parser.add_argument("--sets", nargs="+", default=CHOICES, choices=CHOICES)
    parser.add_argument("--counts", nargs="+", type=int, default=[50, 300, 1000])
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    cells = Cells(given.output, Cell)
    wanted = [
        Cell(name, count, seed, way)
        for seed, name, count, way in product(
            range(given.seeds), given.sets, given.counts, given.ways
        )
    ]
    cells.run(wanted, lambda cell: {"accuracy": run_cell(cell, given.data)})
    print("\n".join(show(cells.rows())))


def run_cell(cell: Cell, data: Path) -> float:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        task_set = keep_some(prepare_set(data, cell.set, folder), cell.count, cell.seed, folder)
        if cell.way == "regression":
            return regress(task_set)
        encoder = find_minilm()
        if cell.way == "paper":
            encoder = copy_encoder(encoder, folder / "encoder")
        words = [
            "--model",
            encoder,
            "--seed",
            cell.seed,
            *task_set.flags,
            *FLAGS[cell.way],
            *IN_FP32,
        ]
        files = ["--train", task_set.parts["train"], "--output", folder / "model"]
        run_bertkit("finetune", task_set.task, *words, *files)
        words = [folder / "model", task_set.parts[task_set.reported], *task_set.flags, *IN_FP32]
        found = json.loads(run_bertkit("evaluate", *words, "--json"))
        accuracy: float = found["metrics"]["accuracy"]
        return accuracy


def regress(task_set: TaskSet) -> float:
    embedder = load_embedder(find_minilm(), "auto", "fp32", Place.of("cpu"))
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


def show(rows: list[Row]) -> list[str]:
    lines = [begin_table("set", "rows", *WAYS)]
    for name, count in sorted({(row["cell"]["set"], row["cell"]["count"]) for row in rows}):
        found = [choose(rows, Cell, set=name, count=count, way=way) for way in WAYS]
        accuracies = [[100 * row["accuracy"] for row in each] for each in found]
        cells = [show_spread(each, 1) for each in accuracies]
        lines.append(format_row(name, f"{count:,}", *cells))
    return lines


if __name__ == "__main__":
    main()
