"""What a handful of labels is enough for: `bertkit finetune classify --few-shot` beside SetFit.

    python benchmarks/bench_few_labels.py --draws 10 --counts 8 16 --setfit setfit/bin/python

Each draw takes some rows of each label to learn from. The ways, all with all-MiniLM-L6-v2:

- `solved`: `bertkit finetune classify --features last --train rows --output model/`;
- `few-shot`: the same with `--few-shot` in place of `--features last`;
- `setfit`: SetFit at its defaults, in the interpreter that `--setfit` names; left out without it.

Sets are SST-2 and sentences of six authors, whose test sentences are of other books. Figures are
accuracies on the test rows, which choose nothing. A cell that `--output` has isn't run again.
"""

import csv
import json
import random
import statistics
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

from author_sets import read_authors
from cells import Cells, Row, choose
from minilm import find_minilm
from program import FOLDER, build_parser, run_bertkit
from text_sets import read_labeled_reviews
from turns import begin_table, format_row

Rows = list[tuple[str, str]]
SETS = ("sst2", "authors")
FLAGS = {"solved": ("--features", "last"), "few-shot": ("--few-shot",)}
WAYS = (*FLAGS, "setfit")
TEST_ROWS = {"sst2": 1_000, "authors": 150}  # of authors, of each
AUTHOR_ROWS = 400  # of each, to draw from


@dataclass(frozen=True)
class Cell:
    """A model that learns from `count` rows of each label."""

    set: str
    count: int
    draw: int
    way: str
    test_rows: int = 0  # 0 for those of `TEST_ROWS`


def main() -> None:
    parser = build_parser(__doc__, "few_labels.jsonl")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--counts", nargs="+", type=int, default=[8, 16])
    parser.add_argument("--ways", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--test-rows", type=int, default=0)
    parser.add_argument("--setfit", help="an interpreter that has SetFit")
    given = parser.parse_args()
    cells = Cells(given.output, Cell)
    wanted = [
        Cell(name, count, draw, way, given.test_rows)
        for count, name, draw, way in product(
            given.counts, given.sets, range(given.draws), given.ways
        )
        if way != "setfit" or given.setfit
    ]
    cells.run(wanted, lambda cell: {"accuracy": run_cell(cell, given.data, given.setfit)})
    print("\n".join(show(cells.rows())))


def run_cell(cell: Cell, data: Path, setfit: str | None) -> float:
    pool, test = read_parts(data, cell.set)
    test = test[: cell.test_rows or None]
    train = draw_rows(pool, cell.count, cell.draw)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if cell.way == "setfit":
            told = {"model": str(find_minilm()), "seed": cell.draw, "train": train, "test": test}
            (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")
            return run_setfit(str(setfit), folder / "told.json")
        for name, rows in (("train", train), ("test", test)):
            with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as stream:
                csv.writer(stream).writerows([("text", "label"), *rows])
        files = ["--train", folder / "train.csv", "--dev", folder / "test.csv"]
        words = [*files, "--output", folder / "model", "--seed", cell.draw, *FLAGS[cell.way]]
        found = json.loads(
            run_bertkit("finetune", "classify", "--model", find_minilm(), *words, "--json")
        )
        accuracy: float = found["metrics"]["accuracy"]
        return accuracy


def run_setfit(interpreter: str, told: Path) -> float:
    command = [interpreter, str(FOLDER / "setfit_side.py"), str(told)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"SetFit failed:\n{done.stderr[-2000:]}")
    accuracy: float = json.loads(done.stdout.splitlines()[-1])["accuracy"]
    return accuracy


@cache
def read_parts(data: Path, name: str) -> tuple[Rows, Rows]:
    """Return the rows to draw from and those to judge by."""
    if name == "sst2":
        whole, test = (read_labeled_reviews(data, part) for part in ("train", "test"))
        return whole, test[: TEST_ROWS[name]]
    return (
        read_authors(data, AUTHOR_ROWS),
        read_authors(data, TEST_ROWS[name], held_out=True),
    )


def draw_rows(pool: Rows, count: int, draw: int) -> Rows:
    """Return `count` rows of each label."""
    of_label = defaultdict(list)
    for row in pool:
        of_label[row[1]].append(row)
    generator = random.Random(draw)
    return [row for label in sorted(of_label) for row in generator.sample(of_label[label], count)]


def show(rows: Sequence[Row]) -> list[str]:
    """Return a table of mean accuracies, and of their differences to those of few-shot."""
    lines = [begin_table("set", "rows a label", "way", "accuracy", "few-shot minus this", "draws")]
    for name, count, way in sorted({(*_key(row), row["cell"]["way"]) for row in rows}):
        found, ours = (
            {
                row["cell"]["draw"]: row["accuracy"]
                for row in choose(rows, Cell, set=name, count=count, way=each)
            }
            for each in (way, "few-shot")
        )
        paired = [100 * (ours[draw] - value) for draw, value in found.items() if draw in ours]
        mean = f"{100 * statistics.fmean(found.values()):.1f} %"
        lines.append(format_row(name, count, way, mean, show_difference(paired), len(found)))
    return lines


def _key(row: Row) -> tuple[str, int]:
    return row["cell"]["set"], row["cell"]["count"]


def show_difference(paired: Sequence[float]) -> str:
    """Return the mean difference in points with its standard error."""
    if len(paired) < 2:
        return "–"
    error = statistics.stdev(paired) / len(paired) ** 0.5
    return f"{statistics.fmean(paired):+.1f} ± {error:.1f}"


if __name__ == "__main__":
    main()
