"""Peak memory of fine-tuning a classifier, beside transformers' `Trainer`.

    python benchmarks/bench_finetune_memory.py --sets cola --precisions bf16 fp32 --rounds 2

Whole programs run, in turns, each in a process of its own: `bertkit finetune classify` as a user
runs it, and `peer_trainer.py` with the same recipe (32 examples a step, an evaluation and a
checkpoint an epoch, the best one kept). The model is all-MiniLM-L6-v2. The peak is what the system
says that the process has held at most, libraries included. Linux only.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench_memory import watch, watch_program
from bench_step import describe_machine
from minilm import find_minilm
from task_sets import TaskSet, prepare_set

SIDES = ("bertkit", "transformers")


def main() -> None:
    """Print a table, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="+", default=["cola"], choices=["cola", "sst2", "rte"])
    parser.add_argument("--precisions", nargs="+", default=["bf16", "fp32"])
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks/results/finetune_memory.json")
    )
    arguments = parser.parse_args()
    if not Path("/proc/self/status").exists():
        raise SystemExit("peaks are read from /proc, which only Linux has")
    rows = list(measure(arguments))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": describe_machine(), "epochs": arguments.epochs, "rows": rows}
    arguments.output.write_text(json.dumps(content, indent=1) + "\n")


def measure(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each set and precision: the peaks of both sides in each round."""
    for name in arguments.sets:
        for precision in arguments.precisions:
            peaks: dict[str, list[int]] = {side: [] for side in SIDES}
            for number in range(arguments.rounds):
                for side in SIDES if number % 2 == 0 else reversed(SIDES):
                    peaks[side].append(measure_side(side, name, precision, arguments))
            ours, theirs = (statistics.median(peaks[side]) for side in SIDES)
            print(
                f"{name:>6} {precision}: bertkit {ours / 1e9:.2f} GB, transformers"
                f" {theirs / 1e9:.2f} GB ({theirs / ours:.2f} x)",
                flush=True,
            )
            yield {"set": name, "precision": precision, "peak_bytes": peaks}


def measure_side(side: str, name: str, precision: str, arguments: argparse.Namespace) -> int:
    """The peak of one program, in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        task_set = prepare_set(arguments.data, name, Path(folder))
        if side == "bertkit":
            words = list_words(task_set, precision, arguments.epochs, Path(folder))
            return int(watch("bertkit", words)["peak_bytes"])
        program = str(Path(__file__).with_name("peer_trainer.py"))
        words = [str(arguments.data), name, folder, precision, str(arguments.epochs)]
        return int(watch_program([program, *words])["peak_bytes"])


def list_words(task_set: TaskSet, precision: str, epochs: float, folder: Path) -> list[str]:
    """Words of the command line."""
    columns = [
        word
        for name, column in task_set.columns.items()
        for word in (f"--{name.replace('_', '-')}", column)
    ]
    return [
        *("finetune", task_set.task, "--model", str(find_minilm()), *columns),
        *("--train", str(task_set.parts["train"]), "--dev", str(task_set.parts["dev"])),
        *("--precision", precision, "--epochs", str(epochs), "--output", str(folder / "model")),
    ]


if __name__ == "__main__":
    main()
