"""Fine-tuning by LoRA beside that of all weights: accuracy, peak memory, seconds and bytes.

    python benchmarks/bench_lora.py --seeds 3 --learning-rates 3e-4
    python benchmarks/bench_lora.py --encoders base --rows 512 --epochs 1

`bertkit finetune classify` runs as a user runs it, each time in a process of its own, in turns:
with all weights, and with `--lora` at each rank. Both keep the checkpoint of the best epoch. The
encoder is all-MiniLM-L6-v2 without what says that it is a sentence encoder, so that both read [CLS]
through a new head; or `base`, of the sizes of BERT-Base with random weights, of which the accuracy
says nothing. Accuracy is that of the test set. The peak is what the system says that the process
has held at most, libraries included. Linux only.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from minilm import copy_encoder, find_minilm, write_encoder
from peaks import check_system, watch_bertkit
from program import build_parser, run_bertkit, write_figures
from task_sets import TaskSet, keep_some, prepare_set
from turns import order_turn

BASE = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
}
ADAPTER_FILE = "adapter/adapter_model.safetensors"


def main() -> None:
    parser = build_parser(__doc__, "lora.json")
    parser.add_argument("--sets", nargs="+", default=["sst2"], help="sst2, cola or rte")
    parser.add_argument("--encoders", nargs="+", default=["minilm"], choices=["minilm", "base"])
    parser.add_argument("--ranks", nargs="+", type=int, default=[8])
    parser.add_argument("--learning-rates", nargs="+", type=float, help="of LoRA; by default its")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, help="training rows drawn by the seed; by default all")
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--precision", default="auto")
    arguments = parser.parse_args()
    check_system()
    rows = list(measure(arguments))
    write_figures(arguments.output, rows=rows)


def measure(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each set, encoder and way of training, with the values of each seed."""
    ways: dict[str, list[object]] = {"all weights": []}
    for rank in arguments.ranks:
        for rate in arguments.learning_rates or [None]:
            name = f"--lora {rank}" + ("" if rate is None else f" --learning-rate {rate:g}")
            ways[name] = [*name.split()]
    for set_name in arguments.sets:
        for encoder in arguments.encoders:
            found: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
            for seed in range(arguments.seeds):
                for way in order_turn(list(ways), seed):
                    with tempfile.TemporaryDirectory() as folder:
                        task_set = prepare_set(arguments.data, set_name, Path(folder))
                        if arguments.rows:
                            task_set = keep_some(task_set, arguments.rows, seed, Path(folder))
                        words = [*ways[way], "--seed", seed, "--epochs", arguments.epochs]
                        words += ["--precision", arguments.precision]
                        found[way].append(train(task_set, encoder, words, Path(folder)))
            for way, runs in found.items():
                print(f"{set_name:>6} {encoder:>6} {way}: {describe(runs)}", flush=True)
                yield {"set": set_name, "encoder": encoder, "way": way, "runs": runs}


def train(task_set: TaskSet, encoder: str, words: list[object], folder: Path) -> dict[str, Any]:
    """Train and test once."""
    model, output = folder / "encoder", folder / "model"
    if encoder == "minilm":
        copy_encoder(find_minilm(), model)
    else:
        write_encoder(model, find_minilm(), BASE)
    run = watch_bertkit(
        *("finetune", task_set.task, "--model", model, *task_set.flags, "--output", output),
        *("--train", task_set.parts["train"], "--dev", task_set.parts["dev"]),
        *("--pooling", "cls", "--batch-size", 32, "--keep", 1, *words),
    )
    found = json.loads(
        run_bertkit(
            "evaluate", output, task_set.parts[task_set.reported], "--json", *task_set.flags
        )
    )
    checkpoints = [path for path in (output / "run" / "checkpoints").iterdir() if path.is_dir()]
    sizes = [sum(file.stat().st_size for file in path.iterdir()) for path in checkpoints]
    kept = [path for path in (output / ADAPTER_FILE, output / "model.safetensors") if path.exists()]
    return {
        task_set.metric: found["metrics"][task_set.metric],
        "seconds": run["seconds"],
        "peak_bytes": run["peak_bytes"],
        "checkpoint_bytes": max(sizes),
        "shared_bytes": kept[0].stat().st_size,
    }


def describe(runs: list[dict[str, Any]]) -> str:
    """The medians of several runs, of a metric the mean and its spread."""
    metric = next(iter(runs[0]))
    values = [run[metric] for run in runs]
    middle = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    return (
        f"{metric} {statistics.mean(values):.1%} ({min(values):.1%} to {max(values):.1%}),"
        f" {middle['seconds']:.0f} s, peak {middle['peak_bytes'] / 1e6:,.0f} MB, checkpoint"
        f" {middle['checkpoint_bytes'] / 1e6:.1f} MB, to share"
        f" {middle['shared_bytes'] / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    main()
