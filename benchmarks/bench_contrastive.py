"""Training an encoder of texts beside sentence-transformers' trainer: quality, speed and memory.

    python benchmarks/bench_contrastive.py --measures quality --seeds 0 1 2 --precision bf16
    python benchmarks/bench_contrastive.py --measures speed --rounds 5
    python benchmarks/bench_contrastive.py --measures memory --pairs 1024 --parts 32

All programs run by themselves, in turns, each begun with all-MiniLM-L6-v2 or `--model`, on the same
table with as many pairs a step (32), AdamW at 2e-5, warm-up over a tenth of the steps, clipping,
dropout of the model. sentence-transformers pads each column of a batch to its longest text.

- `stsb`: the training part of STS-B as pairs with a score, the CoSENT loss;
- `stsb-pairs`: its pairs with a score of at least 3.5 as query and passage, in-batch negatives;
- `squad`: questions and their paragraphs, in-batch negatives.

Quality is Spearman's correlation on the test part of STS-B after `--epochs`, with
sentence-transformers reading either folder. Speed is in pairs a second; the side `kept` is
sentence-transformers with freed memory kept as bertkit keeps it (`training/device.py`). Memory is
the most that the process has held, libraries included, at one large batch of `stsb-pairs`: the
whole batch at once, and in `--parts`, for which sentence-transformers has
`CachedMultipleNegativesRankingLoss`. The loss of the first batch is compared in each.
"""

import argparse
import csv
import io
import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.tasks.metrics.correlation import spearman
from contrastive_side import Plan
from devices import Place
from minilm import find_minilm
from program import FOLDER, Answer, be_quiet, build_parser, run_program, write_figures
from search_sets import read_squad
from text_sets import read_gzip
from turns import begin_table, format_row, order_turn, show_ratio, spread

MEASURES = ("quality", "speed", "memory")
SETS = ("stsb", "stsb-pairs", "squad")
PEERS = ("sentence-transformers", "kept")
LEAST_SCORE = 3.5  # of STS-B's pairs, from 0 to 5, that are queries with passages here
NUM_HELD_OUT = 16  # rows, which nobody looks at
Row = dict[str, str]


def main() -> None:
    parser = build_parser(__doc__, "contrastive.json", rounds=5)
    parser.add_argument("--measures", nargs="+", choices=MEASURES, default=MEASURES)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--model", type=Path, help="another encoder than all-MiniLM-L6-v2")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=float, default=1.0, help="of quality")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of quality")
    parser.add_argument("--steps", type=int, default=40, help="of a round of speed")
    parser.add_argument("--pairs", type=int, default=1024, help="of the batch of memory")
    parser.add_argument("--parts", type=int, default=32, help="of that batch")
    Place.add_flags(parser)
    arguments = parser.parse_args()
    be_quiet()
    place = Place.of(arguments.device, arguments.precision)
    measures = {"quality": measure_quality, "speed": measure_speed, "memory": measure_memory}
    figures: dict[str, list[Answer]] = {}
    for name in arguments.measures:
        with tempfile.TemporaryDirectory() as folder:
            figures[name] = list(measures[name](arguments, place, Path(folder)))
    write_figures(arguments.output, place.describe(), **figures)


def measure_quality(
    arguments: argparse.Namespace, place: Place, folder: Path
) -> Iterator[dict[str, Any]]:
    """Spearman's correlation of each side and seed, beside that of the start."""
    test = read_pairs(arguments.data, "test")
    model = arguments.model or find_minilm()
    print(begin_table("set", "side", "Spearman", "of each seed"), flush=True)
    start = correlate(model, test)
    print(format_row("–", "start", f"{start:.2f}", ""), flush=True)
    for name in arguments.sets:
        rows = write_set(arguments.data, name, folder / name)
        num_steps = max(1, round(arguments.epochs * len(rows) / arguments.batch_size) - 2)
        found: dict[str, list[float]] = {"bertkit": [], PEERS[0]: []}
        for seed in arguments.seeds:
            for side in order_turn(list(found), seed):
                saved = folder / f"{name}-{side}-{seed}"
                plan = draw_up(arguments, place, folder / name, side, num_steps)
                run_side(plan, seed=seed, saved=str(saved))
                found[side].append(correlate(saved, test))
        for side, values in found.items():
            cells = " ".join(f"{value:.2f}" for value in values)
            print(format_row(name, side, f"{statistics.mean(values):.2f}", cells), flush=True)
        yield {"set": name, "start": start, "steps": num_steps + 2, "spearman": found}


def measure_speed(
    arguments: argparse.Namespace, place: Place, folder: Path
) -> Iterator[dict[str, Any]]:
    """The speed of each side; rounds begin with another side each time."""
    print(begin_table("set", "side", "pairs/s", "padding", "ratio", "of processor time"))
    sides = ["bertkit", *(PEERS[:1] if place.is_gpu else PEERS)]
    for name in arguments.sets:
        write_set(arguments.data, name, folder / name)
        answers: dict[str, list[Answer]] = {side: [] for side in sides}
        for number in range(arguments.rounds):
            for side in order_turn(sides, number):
                plan = draw_up(arguments, place, folder / name, side, arguments.steps)
                answers[side].append(run_side(plan, seed=number))
        check_losses(name, place, answers)
        num_pairs = arguments.steps * arguments.batch_size
        rows = {side: describe_side(answers, side, num_pairs) for side in sides}
        for side, row in rows.items():
            ratios = [show_ratio(row[key]) for key in ("ratio", "cpu_ratio")]
            cells = f"{row['pairs_per_second']:,.1f}", f"{row['padding']:.0%}", *ratios
            print(format_row(name, side, *cells), flush=True)
        yield {"set": name, "batch_size": arguments.batch_size, "sides": list_rows(rows)}


def measure_memory(
    arguments: argparse.Namespace, place: Place, folder: Path
) -> Iterator[dict[str, Any]]:
    """The most memory of a large batch, whole and in parts; two steps each."""
    write_set(arguments.data, "stsb-pairs", folder)
    print(begin_table("pairs", "parts", "side", "memory"), flush=True)
    for num_parts in (1, arguments.parts):
        peaks: dict[str, list[int]] = {"bertkit": [], PEERS[0]: []}
        answers: dict[str, list[Answer]] = {side: [] for side in peaks}
        for side in peaks:
            plan = draw_up(arguments, place, folder, side, 1)
            found = run_side(plan, batch_size=arguments.pairs, num_parts=num_parts)
            answers[side].append(found)
            memory = found["peak_memory_bytes"]
            cells = arguments.pairs, num_parts, side, f"{memory / 1e9:.2f} GB"
            print(format_row(*cells), flush=True)
            yield {
                "pairs": arguments.pairs,
                "parts": num_parts,
                "side": side,
                "peak_memory_bytes": memory,
            }
        check_losses("memory", place, answers)


def write_set(data: Path, name: str, folder: Path) -> list[Row]:
    """Write the tables of a set; return the rows to train on."""
    if name == "squad":
        judged = read_squad(data)
        pairs = [
            (query, judged.documents[document])
            for number, query in judged.queries.items()
            for document in judged.relevance[number]
        ]
        rows = [{"query": query, "passage": passage} for query, passage in pairs]
    else:
        rows = read_pairs(data, "train")
    if name == "stsb-pairs":
        rows = [
            {"query": row["sentence1"], "passage": row["sentence2"]}
            for row in rows
            if float(row["score"]) >= LEAST_SCORE and row["sentence1"] != row["sentence2"]
        ]
    rows = put_new_texts_first(rows)
    folder.mkdir(parents=True, exist_ok=True)
    for part, chosen in (("train", rows), ("dev", rows[:NUM_HELD_OUT])):
        with (folder / f"{part}.csv").open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(chosen)
    return rows


def put_new_texts_first(rows: Sequence[Row]) -> list[Row]:
    """The rows in an order whose first batch has no text twice, which bertkit would leave out."""
    seen: set[str] = set()
    new: list[Row] = []
    others: list[Row] = []
    for row in rows:
        texts = set(list(row.values())[:2])
        (others if texts & seen else new).append(row)
        seen |= texts
    return [*new, *others]


def read_pairs(data: Path, part: str) -> list[Row]:
    """The pairs of STS-B with their scores."""
    path = data / "tasks" / "stsb" / "en" / f"{part}.csv.gz"
    return list(csv.DictReader(io.StringIO(read_gzip(path), newline="")))


def draw_up(
    arguments: argparse.Namespace, place: Place, folder: Path, side: str, num_steps: int
) -> Plan:
    return Plan(
        side=side,
        folder=str(folder),
        model=str(arguments.model or find_minilm()),
        is_scored=folder.name == "stsb",
        num_steps=num_steps,
        batch_size=arguments.batch_size,
        device=str(place.device),
        precision=place.precision,
    )


def run_side(plan: Plan, **changes: Any) -> Answer:
    """Run a side to its end; its last line is the answer."""
    words = json.dumps({**asdict(plan), **changes})
    told = run_program(FOLDER / "contrastive_side.py", words)
    answer: Answer = json.loads(told.splitlines()[-1])
    return answer


def check_losses(what: str, place: Place, answers: dict[str, list[Answer]]) -> None:
    place.check_losses(what, {side: each[0]["loss"] for side, each in answers.items()})


def describe_side(answers: dict[str, list[Answer]], side: str, num_pairs: int) -> dict[str, Any]:
    """The median speed, the padding, and how many times as fast bertkit is, round by round."""
    own, ours = answers[side], answers["bertkit"]
    return {
        "pairs_per_second": statistics.median(num_pairs / one["seconds"] for one in own),
        "padding": 1 - sum(one["tokens"] for one in own) / sum(one["places"] for one in own),
        "ratio": compare(ours, own, "seconds"),
        "cpu_ratio": compare(ours, own, "cpu_seconds"),
    }


def compare(ours: Sequence[Answer], theirs: Sequence[Answer], clock: str) -> dict[str, float]:
    pairs = zip(ours, theirs, strict=True)
    return spread([other[clock] / one[clock] for one, other in pairs], "ratio")


def list_rows(rows: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"side": side, **row} for side, row in rows.items()]


def correlate(folder: Path, rows: Sequence[Row]) -> float:
    """Spearman's correlation of cosines with the scores, times 100."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    first, second = (
        model.encode([row[column] for row in rows], normalize_embeddings=True)
        for column in ("sentence1", "sentence2")
    )
    scores = np.array([float(row["score"]) for row in rows])
    return 100 * float(spearman((first * second).sum(axis=1), scores, None))


if __name__ == "__main__":
    main()
