"""Peak memory of fine-tuning a classifier, beside transformers' `Trainer`.

    python benchmarks/bench_finetune_memory.py --sets cola --precisions bf16 fp32 --rounds 2
    python benchmarks/bench_finetune_memory.py --sets --rows 1000000

Whole programs run, in turns, each in a process of its own: `bertkit finetune classify` as a user
runs it, and `peer_trainer.py` with the same recipe (32 examples a step, an evaluation and a
checkpoint an epoch, the best one kept). The model is all-MiniLM-L6-v2 without what says that it is
a sentence encoder, so that both sides read [CLS] through a new head. The peak is what the system
says that the process has held at most, libraries included. Linux only.

With `--rows`, also that of fine-tuning, evaluating and labelling so many generated rows of up to a
dozen words with two labels; the model is a tiny one with random weights, so that what is measured
is all that stands around it.
"""

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from minilm import copy_encoder, find_minilm
from peaks import check_system, make_model, watch, watch_bertkit, write_texts
from program import FOLDER, build_parser, write_figures
from task_sets import TaskSet, prepare_set
from turns import order_turn

SIDES = ("bertkit", "transformers")
IN_FP32 = ("--precision", "fp32")
STEPS, BATCH_SIZE, HELD_OUT_ROWS = 64, 32, 1000  # of a large table


def main() -> None:
    parser = build_parser(__doc__, "finetune_memory.json", rounds=1)
    parser.add_argument("--sets", nargs="*", default=["cola"], help="cola, sst2 or rte")
    parser.add_argument("--rows", type=int, help="of a generated table; without it there is none")
    parser.add_argument("--precisions", nargs="+", default=["bf16", "fp32"])
    parser.add_argument("--epochs", type=float, default=1.0)
    arguments = parser.parse_args()
    check_system()
    rows = list(measure(arguments))
    if arguments.rows:
        rows += measure_table(arguments.rows)
    write_figures(arguments.output, epochs=arguments.epochs, rows=rows)


def measure(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each set and precision: the peaks of both sides in each round."""
    for name in arguments.sets:
        for precision in arguments.precisions:
            peaks: dict[str, list[int]] = {side: [] for side in SIDES}
            for number in range(arguments.rounds):
                for side in order_turn(SIDES, number):
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
        encoder = make_model(folder / "tiny")
        table, model, epochs = (
            write_table(folder, num_rows),
            folder / "model",
            STEPS * BATCH_SIZE / num_rows,
        )
        tuning = ["--max-length", 64, "--epochs", epochs, "--batch-size", BATCH_SIZE]
        files = ["--train", table, "--dev", folder / "dev.csv", "--output", model]
        for words in (
            ["finetune", "classify", "--model", encoder, *files, *tuning, "--pooling", "cls"],
            ["evaluate", model, table, "--output", folder / "found"],
            ["classify", model, "--file", table, "--output", folder / "found.jsonl"],
        ):
            peak = watch_bertkit(*words, *IN_FP32)["peak_bytes"]
            print(f"{words[0]:>8} of {num_rows:,} rows: {peak / 1e9:.2f} GB", flush=True)
            yield {"command": words[0], "num_rows": num_rows, "peak_bytes": peak}


def write_table(folder: Path, num_rows: int) -> Path:
    """A CSV of texts with two labels, and its first rows as held-out ones."""
    write_texts(folder / "texts.txt", num_rows)
    table, held_out = folder / "train.csv", folder / "dev.csv"
    with (folder / "texts.txt").open() as texts, table.open("w") as stream:
        stream.write("text,label\n")
        for number, text in enumerate(texts):
            stream.write(f"{text.strip()},{'good' if number % 3 else 'bad'}\n")
    with table.open() as stream:
        held_out.write_text("".join(islice(stream, HELD_OUT_ROWS + 1)))
    return table


def measure_side(side: str, name: str, precision: str, arguments: argparse.Namespace) -> int:
    words: list[object]
    with tempfile.TemporaryDirectory() as folder:
        task_set = prepare_set(arguments.data, name, Path(folder))
        if side == "bertkit":
            words = list_words(task_set, Path(folder))
            words += ["--precision", precision, "--epochs", arguments.epochs]
            return int(watch_bertkit(*words)["peak_bytes"])
        words = [arguments.data, name, folder, precision, arguments.epochs]
        return int(watch(FOLDER / "peer_trainer.py", *words)["peak_bytes"])


def list_words(task_set: TaskSet, folder: Path) -> list[object]:
    encoder = copy_encoder(find_minilm(), folder / "encoder")
    return [
        *("finetune", task_set.task, "--model", encoder, *task_set.flags, "--pooling", "cls"),
        *("--train", task_set.parts["train"], "--dev", task_set.parts["dev"]),
        *("--output", folder / "model"),
        *("--batch-size", BATCH_SIZE, "--learning-rate", "3e-5"),
    ]


if __name__ == "__main__":
    main()
