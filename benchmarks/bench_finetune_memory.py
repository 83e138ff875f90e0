"""Peak memory of fine-tuning a classifier, beside transformers' `Trainer`.

    python benchmarks/bench_finetune_memory.py --sets cola --precisions bf16 fp32 --rounds 2
    python benchmarks/bench_finetune_memory.py --sets --rows 1000000

Whole programs run, in turns, each in a process of its own: `bertkit finetune classify` as a user
runs it, and `peer_trainer.py` with the same recipe (32 examples a step, an evaluation and a
checkpoint an epoch, the best one kept). The model is all-MiniLM-L6-v2. The peak is what the system
says that the process has held at most, libraries included. Linux only.

With `--rows`, also that of fine-tuning, evaluating and labelling so many generated rows of up to a
dozen words with two labels; the model is a tiny one with random weights, so that what is measured
is all that stands around it.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bench_memory import watch, watch_program
from bench_step import describe_machine
from bench_stream_memory import VOCABULARY_TEXTS, make_model, write_texts
from minilm import find_minilm
from task_sets import TaskSet, prepare_set

SIDES = ("bertkit", "transformers")
STEPS, BATCH_SIZE, HELD_OUT_ROWS = 64, 32, 1000  # of a large table


def main() -> None:
    """Print a table, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--sets", nargs="*", default=["cola"], help="cola, sst2 or rte")
    parser.add_argument("--rows", type=int, help="of a generated table; without it there is none")
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
    if arguments.rows:
        rows += measure_table(arguments.rows)
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


def measure_table(num_rows: int) -> Iterator[dict[str, Any]]:
    """A row for each command that reads a large table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_texts(folder / "vocabulary.txt", VOCABULARY_TEXTS)
        make_model(folder / "tiny", folder / "vocabulary.txt", folder / "tokenizer")
        table, model = write_table(folder, num_rows), str(folder / "model")
        for words in (
            [
                *("finetune", "classify", "--model", str(folder / "tiny"), "--train", table),
                *("--dev", str(folder / "dev.csv"), "--output", model, "--max-length", "64"),
                *("--epochs", str(STEPS * BATCH_SIZE / num_rows)),
            ],
            ["evaluate", model, table, "--output", str(folder / "found")],
            ["classify", model, "--file", table, "--output", str(folder / "found.jsonl")],
        ):
            peak = watch("bertkit", words)["peak_bytes"]
            print(f"{words[0]:>8} of {num_rows:,} rows: {peak / 1e9:.2f} GB", flush=True)
            yield {"command": words[0], "num_rows": num_rows, "peak_bytes": peak}


def write_table(folder: Path, num_rows: int) -> str:
    """A CSV of texts with two labels, and its first rows as held-out ones."""
    write_texts(folder / "texts.txt", num_rows)
    table, held_out = folder / "train.csv", folder / "dev.csv"
    with (folder / "texts.txt").open() as texts, table.open("w") as stream:
        stream.write("text,label\n")
        for number, text in enumerate(texts):
            stream.write(f"{text.strip()},{'good' if number % 3 else 'bad'}\n")
    with table.open() as stream:
        held_out.write_text("".join(islice(stream, HELD_OUT_ROWS + 1)))
    return str(table)


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
