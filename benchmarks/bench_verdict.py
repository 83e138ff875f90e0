"""How often the verdict of `finetune embed` is right, with real pairs and with shuffled ones.

    python benchmarks/bench_verdict.py --draws 20

Each draw takes 160 rows of a set and trains all-MiniLM-L6-v2 on them by `bertkit.finetune`, which
holds 60 of them out:

- `captions`: English captions and their German translations (Multi30k), ranked by nDCG@10;
- `similarity`: German sentences with a score (STS-B), compared by Spearman's correlation.

`real` are these rows. In `shuffled` the second texts, or the scores, of all rows are in random
order, so nothing can be learned. In `shuffled training` only those of the rows that are trained on
are. `truth` is the difference between the model that was saved and its start on 200 other rows
that are as they should be; of shuffled rows, no gain there is one that the rows taught.
"""

import csv
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt

import bertkit
from bertkit.recipes.finetune.saved import SavedFineTuning
from bertkit.tasks.metrics.correlation import spearman
from bertkit.tasks.ranking import RankedQuery
from cells import Cells, Row, choose
from minilm import find_minilm
from program import build_parser
from text_sets import read_gzip
from turns import begin_table, format_row

SETS = ("captions", "similarity")
WAYS = ("real", "shuffled", "shuffled training")
HELD_OUT, NUM_OTHERS, NUM_EVALUATIONS = 3 / 8, 200, 4
BATCH_SIZE = 32
Texts = tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """A training on rows of a set."""

    set: str
    way: str
    draw: int
    size: int = 160  # rows
    epochs: int = 3


def main() -> None:
    parser = build_parser(__doc__, "verdict.jsonl")
    parser.add_argument("--model", type=Path, help="by default all-MiniLM-L6-v2")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--rows", type=int, default=160)
    parser.add_argument("--epochs", type=int, default=3)
    given = parser.parse_args()
    model = given.model or find_minilm()
    cells = Cells(given.output, Cell)
    wanted = [
        Cell(name, way, draw, given.rows, given.epochs)
        for draw, name, way in product(range(given.draws), given.sets, given.ways)
    ]
    cells.run(wanted, lambda cell: run_cell(cell, given.data, model))
    print("\n".join(show(cells.rows(), given.rows, given.epochs)))


def run_cell(cell: Cell, data: Path, model: Path) -> Row:
    whole = read_rows(data, cell.set)
    generator = np.random.default_rng(cell.draw)
    order = generator.permutation(len(whole))
    rows = [whole[place] for place in order[: cell.size]]
    others = [whole[place] for place in order[cell.size : cell.size + NUM_OTHERS]]
    num_held_out = round(HELD_OUT * len(rows))
    dev = rows[:num_held_out]
    rows = rows[num_held_out:]
    if cell.way != "real":
        rows = shuffle(rows, generator)
    if cell.way == "shuffled":
        dev = shuffle(dev, generator)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "model"
        names = ("query", "passage") if cell.set == "captions" else ("text1", "text2", "score")
        train, held_out = (
            [dict(zip(names, row, strict=True)) for row in part] for part in (rows, dev)
        )
        trained = bertkit.finetune(
            "embed",
            train=train,
            dev=held_out,
            model=str(model),
            output=output,
            epochs=cell.epochs,
            eval_every=max(1, len(rows) * cell.epochs // (BATCH_SIZE * NUM_EVALUATIONS)),
            batch_size=BATCH_SIZE,
            seed=cell.draw,
            device="cpu",
        )
        saved = SavedFineTuning.read(output)
        before, after = (
            measure(cell.set, embedder, others)
            for embedder in (bertkit.Embedder.load(model), trained)
        )
    assert saved.verdict is not None
    told = saved.verdict.model_dump(exclude={"metric", "unit"})
    return {**told, "saved_step": saved.best_step, "truth": round(after - before, 4)}


@cache
def read_rows(data: Path, name: str) -> list[Texts]:
    """Pairs of captions, or of sentences with their score, each text once."""
    if name == "captions":
        folder = data / "parallel" / "multi30k"
        sides = [
            read_gzip(folder / f"train.{language}.gz").splitlines() for language in ("en", "de")
        ]
        return list(dict.fromkeys(zip(*sides, strict=True)))
    lines = read_gzip(data / "tasks" / "stsb" / "de" / "train.csv.gz").splitlines()
    return [(row["sentence1"], row["sentence2"], row["score"]) for row in csv.DictReader(lines)]


def shuffle(rows: Sequence[Texts], generator: np.random.Generator) -> list[Texts]:
    """Give each row the last cell of another one."""
    order = generator.permutation(len(rows))
    return [(*row[:-1], rows[place][-1]) for row, place in zip(rows, order, strict=True)]


def measure(name: str, embedder: bertkit.Embedder, rows: Sequence[Texts]) -> float:
    """The metric of a set on other rows."""
    first, second = (unit(embedder([row[side] for row in rows])) for side in (0, 1))
    if name == "similarity":
        return float(spearman([float(row[2]) for row in rows], (first * second).sum(axis=1)))
    passages = [row[1] for row in rows]
    cosines = first @ second.T
    same = np.eye(len(rows))
    found = [RankedQuery.of("", passages, *row) for row in zip(cosines, same, strict=True)]
    return float(np.mean([each.metrics[0] for each in found]))


def unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    found: npt.NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return found


def show(rows: list[Row], size: int, epochs: int) -> list[str]:
    words = ("BETTER", "NO CLEAR DIFFERENCE", "WORSE")
    lines = [begin_table("set", "rows", "trainings", *words, "difference", "truth")]
    for name, way in product(SETS, WAYS):
        found = choose(rows, Cell, set=name, way=way, size=size, epochs=epochs)
        if found:
            counts = Counter(row["word"] for row in found)
            means = (np.mean([row[key] for row in found]) for key in ("difference", "truth"))
            told = [str(counts[word]) for word in words]
            shown = [f"{100 * mean:+.1f}" for mean in means]
            lines.append(format_row(name, way, str(len(found)), *told, *shown))
    return lines


if __name__ == "__main__":
    main()
