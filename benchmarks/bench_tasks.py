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
- `frozen`: SST-2 and WNUT-17 with a frozen encoder under a linear layer or a BiLSTM.

The best epoch is chosen on dev. Figures are of the test part, or of dev where there is none. The
encoder is all-MiniLM-L6-v2; others are given as NAME=FOLDER, and have the table `sets` only.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import torch

from bertkit.models.bert.encoder import BertModel
from bertkit.models.open_model import OpenModel
from bertkit.tokenization.tokenizer import Tokenizer
from minilm import find_minilm
from program import build_parser, describe_machine
from task_cells import PAPER, SENTENCE, Cell, finetune_bertkit, run_transformers
from task_sets import SETS, TaskSet, prepare_set
from turns import begin_table

COMPARED = ("sst2", "wnut17", "squad")
CLASSIFIED = ("sst2", "cola", "rte")
COUNTS = (100, 500, 2000, None)
FROZEN = ("sst2", "wnut17")
HEADS = ("linear", "bilstm")
MINILM, RANDOM = "minilm", "random"
SYSTEMS = {"bertkit": finetune_bertkit, "transformers": run_transformers}

Row = dict[str, Any]


def main() -> None:
    """Run what is missing, and print the tables."""
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
    with tempfile.TemporaryDirectory() as folder:
        write_random_encoder(Path(folder))
        encoders[RANDOM] = Path(folder)
        hashes = {name: hash_encoder(path) for name, path in encoders.items()}
        done = list_done(read_rows(arguments.output), hashes)
        missing = [cell for cell in dict.fromkeys(cells) if cell not in done]
        run_cells(missing, arguments, encoders, hashes)
    rows = read_rows(arguments.output)
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


def run_cells(
    cells: Sequence[Cell],
    arguments: argparse.Namespace,
    encoders: dict[str, Path],
    hashes: dict[str, str],
) -> None:
    """Run cells, some at a time, and write each as soon as it is there."""
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    cores = (os.cpu_count() or 1) // arguments.jobs
    os.environ["OMP_NUM_THREADS"] = str(max(1, cores))  # of the processes that are begun
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with ThreadPoolExecutor(arguments.jobs) as workers:
        futures = [workers.submit(run_cell, cell, arguments.data, encoders) for cell in cells]
        try:
            for number, future in enumerate(as_completed(futures), start=1):
                told = note(future, hashes, arguments.output)
                print(f"{number} of {len(cells)}: {told}", flush=True)
        finally:
            workers.shutdown(cancel_futures=True)


def note(future: Future[Row], hashes: dict[str, str], output: Path) -> str:
    """Write a run's line, and say what came of it; one that failed is missing the next time too."""
    try:
        row = future.result()
    except RuntimeError as error:
        return str(error)
    row["encoder_sha256"] = hashes[row["cell"]["encoder"]]
    with output.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(row) + "\n")
    return f"{row['command']}: {row['metrics']}"


def run_cell(cell: Cell, data: Path, encoders: dict[str, Path]) -> Row:
    """One run."""
    started = time.perf_counter()
    metrics, command = SYSTEMS[cell.system](cell, data, encoders[cell.encoder])
    return {
        "cell": asdict(cell),
        "metrics": metrics,
        "command": command,
        "seconds": time.perf_counter() - started,
        "machine": describe_machine(),
    }


def list_done(rows: Sequence[Row], hashes: dict[str, str]) -> set[Cell]:
    """The cells that have been run, with the encoders that are meant."""
    for row in rows:
        name, found = row["cell"]["encoder"], row["encoder_sha256"]
        if hashes.get(name, found) != found:
            raise SystemExit(f"--output has runs of another encoder {name}; give it another name")
    return {Cell(**row["cell"]) for row in rows}


def hash_encoder(encoder: Path) -> str:
    """SHA-256 of an encoder's files, in whatever folder they lie."""
    return OpenModel.open(encoder).sha256


def write_random_encoder(folder: Path) -> None:
    """A model of the same sizes, whose weights were drawn."""
    torch.manual_seed(0)
    source = find_minilm()
    BertModel(BertModel.from_pretrained(source).config).save_pretrained(folder)
    Tokenizer.load(source).save(folder)


def read_rows(path: Path) -> list[Row]:
    """What has been run."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def has(row: Row, wanted: Mapping[str, Any]) -> bool:
    """Whether a row's cell is as wanted; earlier ones don't tell their recipe."""
    cell = asdict(Cell(**row["cell"]))
    return {**cell, **wanted} == cell


def show(rows: Sequence[Row], metric: str, **wanted: Any) -> str:
    """Median, least, greatest and number over the seeds of a cell."""
    values = [row["metrics"][metric] for row in rows if has(row, wanted)]
    if not values:
        return "–"
    digits = 1 if max(values) > 1 else 3
    middle, low, high = (f"{each(values):.{digits}f}" for each in (statistics.median, min, max))
    return f"{middle} ({low}–{high}; {len(values)})" if len(values) > 1 else f"{middle} (one run)"


def show_sets(rows: Sequence[Row], sets: dict[str, TaskSet]) -> Iterator[str]:
    """A line for each set."""
    whole = [row for row in rows if row["cell"]["count"] is None and row["cell"]["head"] is None]
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
        yield format_line(name, task_set.metric, task_set.reported, *values)


def show_less(rows: Sequence[Row], sets: dict[str, TaskSet]) -> Iterator[str]:
    """A line for each number of examples."""
    metric = sets["sst2"].metric
    ours = [row for row in rows if row["cell"]["system"] == "bertkit"]
    yield begin_table("examples", "pre-trained", "random weights")
    for count in COUNTS:
        chosen = {"set": "sst2", "count": count, "head": None, "recipe": PAPER}
        values = [show(ours, metric, encoder=name, **chosen) for name in (MINILM, RANDOM)]
        yield format_line("all" if count is None else f"{count:,}", *values)


def show_frozen(rows: Sequence[Row], sets: dict[str, TaskSet]) -> Iterator[str]:
    """A line for each set."""
    ours = [row for row in rows if row["cell"]["system"] == "bertkit"]
    yield begin_table("set", "metric", "fine-tuned", *(f"frozen, {head}" for head in HEADS))
    for name in FROZEN:
        chosen = {"set": name, "encoder": MINILM, "count": None, "recipe": PAPER}
        values = [show(ours, sets[name].metric, head=head, **chosen) for head in (None, *HEADS)]
        yield format_line(name, sets[name].metric, *values)


TABLES: dict[str, Callable[[Sequence[Row], dict[str, TaskSet]], Iterator[str]]] = {
    "sets": show_sets,
    "less": show_less,
    "frozen": show_frozen,
}


def format_line(*cells: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
