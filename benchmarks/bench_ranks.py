"""Speed of pre-training in several processes of one thread beside one process of several.

    python benchmarks/bench_ranks.py --data shards/ --ranks 2

Each side is the command that a user types, on the same shards, with the same batch size; rounds are
interleaved. A side's speed is the median tokens per second of the later half of its steps, and the
losses of its steps are compared with those of one process: the greatest relative difference.
"""

import argparse
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertkit.training.log import read_log
from program import build_parser, run_program, write_figures
from turns import order_turn

Rows = Sequence[Mapping[str, Any]]


def main() -> None:
    parser = build_parser(__doc__, "ranks.json", data=None, rounds=3)
    parser.add_argument("--data", type=Path, required=True, help="shards")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--models", nargs="+", default=["mini", "small"])
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    results = [compare(model, arguments) for model in arguments.models]
    write_figures(arguments.output, results=results)


def compare(model: str, arguments: argparse.Namespace) -> dict[str, Any]:
    sides = {
        "one process": (1, []),
        "ranks": (arguments.ranks, []),
        "ranks, --fsdp": (arguments.ranks, ["--fsdp"]),
    }
    rates: dict[str, list[float]] = {name: [] for name in sides}
    differences: dict[str, float] = dict.fromkeys(sides, 0.0)
    for number in range(arguments.rounds):
        rows = {
            name: train(model, *sides[name], arguments) for name in order_turn(list(sides), number)
        }
        for name, steps in rows.items():
            rates[name].append(median_rate(steps))
            differences[name] = max(differences[name], compare_losses(rows["one process"], steps))
    print(f"{model}: tokens/s, share of one process's (median of the rounds, least and greatest)")
    for name, found in rates.items():
        shares = [own / one for own, one in zip(found, rates["one process"], strict=True)]
        print(
            f"  {name:<14} {statistics.median(found):>9,.0f}  {statistics.median(shares):.2f}"
            f" ({min(shares):.2f}–{max(shares):.2f})  losses differ by {differences[name]:.1e}"
        )
    return {"model": model, "tokens_per_second": rates, "greatest_difference": differences}


def train(model: str, num_ranks: int, more: Sequence[str], arguments: argparse.Namespace) -> Rows:
    """Pre-train in some processes; return the rows of the log's steps."""
    with tempfile.TemporaryDirectory() as folder:
        words = (
            f"-m bertkit pretrain --data {arguments.data} --output {folder}/run --size {model}"
            f" --steps {arguments.steps} --batch-size {arguments.batch_size}"
            f" --max-length {arguments.max_length} --dropout 0 --precision fp32 --device cpu"
            f" --eval-examples 1 --eval-every {arguments.steps}"
        )
        launcher = (
            f"-m torch.distributed.run --standalone --nproc-per-node {num_ranks}".split()
            if num_ranks > 1
            else []
        )
        threads = arguments.ranks // num_ranks
        run_program(*launcher, *words.split(), *more, OMP_NUM_THREADS=str(threads))
        rows = read_log(Path(folder) / "run" / "log.jsonl")
        return [row for row in rows if row["event"] == "train"]


def median_rate(steps: Rows) -> float:
    """The median tokens per second of the later half of the steps."""
    return statistics.median(float(row["tokens_per_second"]) for row in steps[len(steps) // 2 :])


def compare_losses(expected: Rows, found: Rows) -> float:
    """The greatest relative difference between the losses of two runs."""
    pairs = zip(expected, found, strict=True)
    return max(abs(float(one["loss"]) / float(other["loss"]) - 1.0) for one, other in pairs)


if __name__ == "__main__":
    main()
