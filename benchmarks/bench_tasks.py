"""What fine-tuned models score: beside transformers, with less data, and with a frozen encoder.

    python benchmarks/bench_tasks.py --systems bertkit transformers --seeds 3
    python benchmarks/bench_tasks.py --tables sets --only sst2 --encoders mini=run/

A cell is one run with one seed; each becomes a line of `--output` as soon as it is there, and isn't
run again. Tables are printed of all that the file has, as medians with the least, the greatest and
the number of runs:

- `sets`: SST-2, CoLA, RTE, WNUT-17 and a sample of SQuAD; transformers has three of them. Both
  sides run the paper's recipe, [CLS] and a new head; with `--recipes sentence`, classifiers also
  pool the encoder's tokens and begin with a solved head, as `finetune` does by default;
- `less`: SST-2 with 100, 500, 2,000 and all examples, from pre-trained and from random weights;
  each seed draws its own examples, and few are seen in more epochs, as `finetune` decides;
- `frozen`: SST-2 and WNUT-17 with a frozen encoder under a linear layer.

The best epoch is chosen on dev. Figures are of the test part, or of dev where there is none. The
encoder is all-MiniLM-L6-v2; others are given as NAME=FOLDER, and have the table `sets` only.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

from bertkit.models.open_model import OpenModel
from cells import Cells, Row, choose, show_spread
from minilm import find_minilm, write_encoder
from program import build_parser
from task_cells import PAPER, SENTENCE, Cell, finetune_bertkit, run_transformers
from task_sets import SETS, TaskSet, prepare_set
from turns import begin_table, format_row

COMPARED = ("sst2", "wnut17", "squad")
CLASSIFIED = ("sst2", "cola", "rte")
COUNTS = (100, 500, 2000, None)
FROZEN = ("sst2", "wnut17")
HEADS = ("linear",)
MINILM, RANDOM = "minilm", "random"
SYSTEMS = {"bertkit": finetune_bertkit, "transformers": run_transformers}


def main() -> None:
    parser = build_parser(__doc__, "tasks.jsonl")
    parser.add_argument("--tables", nargs="+", default=list(PLANS), choices=PLANS)
    parser.add_argument("--only", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--systems", nargs="+", default=["bertkit"], choices=SYSTEMS)
    parser.add_argument("--recipes", nargs="+", default=[PAPER], choices=(PAPER, SENTENCE))
    parser.add_argument("--encoders", nargs="+", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, which share the cores")
    arguments = parser.parse_args()
    given = dict(word.split("=", maxsplit=1) for word in arguments.encoders)
    encoders = {MINILM: find_minilm(), **{name: Path(path) for name, path in given.items()}}
    cells = [
        replace(cell, seed=seed)
        for seed in range(arguments.seeds)  # all tables have a seed before one has the next
        for table in arguments.tables
        for cell in PLANS[table](arguments.systems, list(encoders), arguments.recipes)
        if cell.set in arguments.only
    ]
    cores = (os.cpu_count() or 1) // arguments.jobs
    os.environ["OMP_NUM_THREADS"] = str(max(1, cores))  # of the processes that are begun
    runs = Cells(arguments.output, Cell)
    with tempfile.TemporaryDirectory() as folder:
        encoders[RANDOM] = Path(folder)
        write_encoder(encoders[RANDOM], find_minilm())
        hashes = {name: OpenModel.open(path).sha256 for name, path in encoders.items()}
        check_encoders(runs.rows(), hashes)
        run = partial(run_cell, data=arguments.data, encoders=encoders, hashes=hashes)
        runs.run(cells, run, arguments.jobs)
    rows = runs.rows()
    with tempfile.TemporaryDirectory() as scratch:
        sets = {name: prepare_set(arguments.data, name, Path(scratch)) for name in SETS}
    for table in arguments.tables:
        print("\n".join(["", *TABLES[table](rows, sets)]))


def plan_sets(
    systems: Sequence[str], encoders: Sequence[str], recipes: Sequence[str]
) -> Iterator[Cell]:
    """Every set with every system, encoder and recipe that it has."""
    for name, encoder, recipe in product(SETS, encoders, recipes):
        is_paper = recipe == PAPER
        if "bertkit" in systems and (is_paper or (name in CLASSIFIED and encoder == MINILM)):
            yield Cell(name, "bertkit", encoder, recipe=recipe)
        if "transformers" in systems and name in COMPARED and encoder == MINILM and is_paper:
            yield Cell(name, "transformers", encoder)


def plan_less(*_: Sequence[str]) -> Iterator[Cell]:
    """Fewer examples, with pre-trained and with random weights."""
    for count in COUNTS:
        yield Cell("sst2", encoder=MINILM, count=count)
        yield Cell("sst2", encoder=RANDOM, count=count)


def plan_frozen(*_: Sequence[str]) -> Iterator[Cell]:
    """The encoder trained, or frozen under a head."""
    for name in FROZEN:
        for head in (None, *HEADS):
            yield Cell(name, head=head)


PLANS: dict[str, Callable[[Sequence[str], Sequence[str], Sequence[str]], Iterator[Cell]]] = {
    "sets": plan_sets,
    "less": plan_less,
    "frozen": plan_frozen,
}


def run_cell(
    cell: Cell, data: Path, encoders: dict[str, Path], hashes: dict[str, str]
) -> dict[str, object]:
    metrics, command = SYSTEMS[cell.system](cell, data, encoders[cell.encoder])
    return {"metrics": metrics, "command": command, "encoder_sha256": hashes[cell.encoder]}


def check_encoders(rows: Sequence[Row], hashes: dict[str, str]) -> None:
    """See that what was run had the encoders that are meant."""
    for row in rows:
        name, found = row["cell"]["encoder"], row["encoder_sha256"]
        if hashes.get(name, found) != found:
            raise SystemExit(f"--output has runs of another encoder {name}; give it another name")


def show(rows: Sequence[Row], metric: str, **wanted: object) -> str:
    """The spread of a metric over the seeds of a cell."""
    values = [row["metrics"][metric] for row in choose(rows, Cell, **wanted)]
    return show_spread(values, 1 if max(values, default=0.0) > 1 else 3)


def show_sets(rows: Sequence[Row], sets: dict[str, TaskSet]) -> Iterator[str]:
    whole = choose(rows, Cell, count=None, head=None)
    cells = [Cell(**row["cell"]) for row in whole]
    columns = sorted({(cell.encoder, cell.system, cell.recipe) for cell in cells})
    columns = [column for column in columns if column[0] != RANDOM]
    titles = [", ".join(column) for column in columns]
    yield begin_table("set", "metric", "part", *titles)
    for name, task_set in sets.items():
        values = [
            show(whole, task_set.metric, set=name, encoder=encoder, system=system, recipe=recipe)
            for encoder, system, recipe in columns
        ]
        yield format_row(name, task_set.metric, task_set.reported, *values)


def show_less(rows: Sequence[Row], sets: dict[str, TaskSet]) -> Iterator[str]:
    metric = sets["sst2"].metric
    ours = choose(rows, Cell, system="bertkit")
    yield begin_table("examples", "pre-trained", "random weights")
    for count in COUNTS:
        chosen = {"set": "sst2", "count": count, "head": None, "recipe": PAPER}
        values = [show(ours, metric, encoder=name, **chosen) for name in (MINILM, RANDOM)]
        yield format_row("all" if count is None else f"{count:,}", *values)


def show_frozen(rows: Sequence[Row], sets: dict[str, TaskSet]) -> Iterator[str]:
    ours = choose(rows, Cell, system="bertkit")
    yield begin_table("set", "metric", "fine-tuned", *(f"frozen, {head}" for head in HEADS))
    for name in FROZEN:
        chosen = {"set": name, "encoder": MINILM, "count": None, "recipe": PAPER}
        values = [show(ours, sets[name].metric, head=head, **chosen) for head in (None, *HEADS)]
        yield format_row(name, sets[name].metric, *values)


TABLES: dict[str, Callable[[Sequence[Row], dict[str, TaskSet]], Iterator[str]]] = {
    "sets": show_sets,
    "less": show_less,
    "frozen": show_frozen,
}


if __name__ == "__main__":
    main()
