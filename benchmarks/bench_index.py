"""An index of texts that changes: building, adding, deleting, searching, sizes, beside peers.

    python benchmarks/bench_index.py
    python benchmarks/bench_index.py --rows 1000000 --sentences --letters 20 --drawn \
        --sides bertkit --rounds 1 --output benchmarks/results/index-million.json

Passages of books (one a paragraph) with an id, two fields and the same 384 numbers each, so that
no model is part of it. A turn of a side is two processes: one builds the store of all rows, adds
1,000 and deletes 1,000, each of which is on disk then; one opens it, searches it once (cold, with
the file in the page cache and the libraries imported), and then with a query at a time for the ten
best: all rows, those that a filter passes (one of a hundred), and by words and vectors. The queries
are sentences. Memory is what the process that searches has of its own at the end; resident, at
most, with libraries and the file as far as it is mapped. The sides take turns; a peer whose turn
took over half a minute has no other one. Peers that aren't installed are left out; see
index_peers.py for how each is used. What is in `--folder` (texts, vectors) is used again.
"""

import json
import shutil
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from index_rows import Materials
from index_side import BERTKIT, STORES
from peaks import check_system
from program import FOLDER, Answer, build_parser, list_versions, run_program, write_figures
from turns import begin_table, format_row, order_turn, spread, summarize

LONG_TURN = 30.0  # seconds, after which a peer has no other turn
ALLOWED = 1.5  # times that a peer may be as fast, or as small, as ours
RAM_DISK = Path("/dev/shm")  # for a store that writes each row through to the disk
# What is measured: the path to it in a side's figures, its unit in the table and by what it is
# multiplied there. Less is better.
MEASURES: dict[str, tuple[tuple[str, ...], str, float]] = {
    "build": (("build", "seconds_a_row"), "µs a row", 1e6),
    "add": (("add", "seconds"), "s", 1.0),
    "delete": (("delete", "seconds"), "s", 1.0),
    "cold": (("cold", "seconds"), "s", 1.0),
    "p50": (("search", "p50_seconds"), "ms", 1e3),
    "p95": (("search", "p95_seconds"), "ms", 1e3),
    "filtered_p50": (("filtered", "p50_seconds"), "ms", 1e3),
    "filtered_p95": (("filtered", "p95_seconds"), "ms", 1e3),
    "both_p50": (("both", "p50_seconds"), "ms", 1e3),
    "both_p95": (("both", "p95_seconds"), "ms", 1e3),
    "disk": (("disk_bytes",), "MB", 1e-6),
    "memory": (("memory_bytes",), "MB", 1e-6),
    "resident": (("resident_bytes",), "MB", 1e-6),
}
CPU = ("build", "add", "delete", "cold", "search", "filtered")
RECALLS = ("recall", "filtered_recall")


def main() -> None:
    parser = build_parser(__doc__, "index.json", rounds=2)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--changed", type=int, default=1000, help="rows to add and to delete")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--letters", type=int, default=60, help="that a text has at least")
    parser.add_argument("--sentences", action="store_true", help="sentences of more books")
    parser.add_argument("--drawn", action="store_true", help="random vectors")
    parser.add_argument("--folder", type=Path, help="for texts, vectors and stores")
    parser.add_argument("--sides", nargs="+", choices=STORES, default=list_installed())
    arguments = parser.parse_args()
    check_system()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        counts = (arguments.rows + arguments.changed, arguments.queries)
        Materials(folder).prepare(
            arguments.data,
            counts,
            arguments.letters,
            sentences=arguments.sentences,
            drawn=arguments.drawn,
        )
        turns = take_turns(folder, arguments.sides, arguments.rounds, arguments.changed)
    results = [summarize_side(name, turns) for name in arguments.sides]
    print_table(results)
    rows = {"rows": arguments.rows, "changed": arguments.changed}
    write_figures(arguments.output, list_versions(*STORES), **rows, results=results)


def list_installed() -> list[str]:
    return [name for name, store in STORES.items() if find_spec(store.modules[0].split(".")[0])]


def take_turns(
    folder: Path, names: list[str], rounds: int, changed: int
) -> dict[str, list[Answer]]:
    """The figures of each side's turns."""
    turns: dict[str, list[Answer]] = {name: [] for name in names}
    filled: dict[str, Answer] = {}
    long: set[str] = set()
    with tempfile.TemporaryDirectory(dir=RAM_DISK if RAM_DISK.is_dir() else folder) as ram_disk:
        for number in range(rounds):
            for name in order_turn(names, number):
                if name in long:
                    continue
                started = time.perf_counter()
                turns[name].append(take_turn(name, folder, Path(ram_disk), changed, filled))
                if name != BERTKIT and time.perf_counter() - started > LONG_TURN:
                    long.add(name)
                print(describe_turn(name, turns[name][-1]), flush=True)
    return turns


def take_turn(
    name: str, folder: Path, ram_disk: Path, changed: int, filled: dict[str, Answer]
) -> Answer:
    """Write a store and search it; that of a peer that is built of some rows is filled once."""

    def run(phase: str, store: Path) -> Answer:
        return run_side(name, phase, folder, store, "--changed", changed)

    store = folder / f"{name}.store"
    shutil.rmtree(store, ignore_errors=True)
    written = run("write", store)
    if STORES[name].most_rows is not None:
        shutil.rmtree(store)
        store = ram_disk / name
        if name not in filled:
            filled[name] = run("fill", store)
        written |= filled[name]
    written["build"]["seconds_a_row"] = written["build"]["seconds"] / written["num_built"]
    found = run("search", store)
    if store.parent == folder:
        shutil.rmtree(store, ignore_errors=True)
    return written | found


def run_side(name: str, phase: str, *words: object) -> Answer:
    """What a side prints last."""
    printed = run_program("-W", "ignore", FOLDER / "index_side.py", name, phase, *words)
    told: Answer = json.loads(printed.splitlines()[-1])
    return told


def summarize_side(name: str, turns: dict[str, list[Answer]]) -> Answer:
    """Medians with the least and the greatest, and how many times as good ours is."""
    own = turns[name]
    row: Answer = {"side": name, "rounds": len(own)}
    for measure in MEASURES:
        values = list_values(own, measure)
        row[measure] = spread(values) if values else None
    row["cpu_seconds"] = {key: min(one[key]["cpu_seconds"] for one in own) for key in CPU}
    row |= {key: own[0][key] for key in RECALLS}
    row["ratios"] = {}
    for measure in MEASURES:
        ours, theirs = (list_values(turns.get(side, []), measure) for side in (BERTKIT, name))
        pairs = list(zip(ours, theirs, strict=False))
        row["ratios"][measure] = summarize(*zip(*pairs, strict=True)) if pairs else None
    return row


def list_values(turns: list[Answer], measure: str) -> list[float]:
    found = []
    for turn in turns:
        value: Any = turn
        for key in MEASURES[measure][0]:
            value = None if value is None else value[key]
        found += [] if value is None else [value]
    return found


def print_table(results: list[Answer]) -> None:
    names = [row["side"] for row in results]
    print(begin_table("", *names))
    for measure, (_, unit, scale) in MEASURES.items():
        cells = [show_cell(row[measure], row["ratios"][measure], scale) for row in results]
        print(format_row(f"{measure}, {unit}", *cells))
    for key in RECALLS:
        print(format_row(key, *(f"{row[key]:.3f}" for row in results)))
    for row in results:
        better = [
            f"{measure} {1 / ratio['ratio']:.1f} ×"
            for measure, ratio in row["ratios"].items()
            if ratio and ratio["ratio"] < 1 / ALLOWED
        ]
        if better:
            print(f"{row['side']} is better by more than {ALLOWED} × in: {', '.join(better)}")


def show_cell(value: dict[str, float] | None, ratio: Answer | None, scale: float) -> str:
    if value is None:
        return "–"
    shown = f"{scale * value['median']:,.4g}"
    return shown if ratio is None else f"{shown} ({ratio['ratio']:.2f} ×)"


def describe_turn(name: str, turn: Answer) -> str:
    seconds = {key: round(turn[key]["seconds"], 3) for key in ("build", "add", "delete", "cold")}
    searched = {key: round(1e3 * turn[key]["p50_seconds"], 2) for key in ("search", "filtered")}
    return f"{name}: seconds {seconds}, ms {searched}"


if __name__ == "__main__":
    main()
