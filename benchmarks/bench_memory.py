"""Peak memory: of both corpus commands on generated text, and of a step beside transformers.

    python benchmarks/bench_memory.py --gigabytes 5 --models tiny mini small medium base large

The commands run as a user runs them; their peak is the sum over all their processes of what the
system says each has held at most, so pages that processes share count more than once. The
text is made by `generated_corpus.py`. A step is forward, backward and AdamW in float32, the second
of two, each side in a process of its own on the same 32 examples of up to 128 tokens
(`BATCH_SIZES` names the models that get fewer), libraries included, and of these bertkit on both
sides, since it reads the examples. transformers has SDPA attention and projects every position on
the vocabulary. Linux only.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_step import build_batches
from generated_corpus import write_generated_corpus
from peaks import check_system, watch_bertkit
from pretraining_sides import SIDES, prepare_documentation
from program import build_parser, write_figures
from saved_batches import write_batches
from sides import Sides

BATCH_SIZE = 32
BATCH_SIZES = {"large": 8}  # with 32, transformers needs more than 24 GB
NUM_STEPS = 2  # the second one has AdamW's state beside the activations


def main() -> None:
    parser = build_parser(__doc__, "memory.json", data=None)
    parser.add_argument("--gigabytes", type=float, default=0.2)
    parser.add_argument("--corpus", type=Path, help="made already, in place of a generated one")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--data", type=Path, help="shards for steps; of Python's documentation")
    parser.add_argument("--models", nargs="*", default=["tiny", "mini", "small"])
    parser.add_argument("--batch-size", type=int, help="instead of each model's own")
    arguments = parser.parse_args()
    check_system()
    with tempfile.TemporaryDirectory() as folder:
        corpus = arguments.corpus or Path(folder) / "corpus"
        if not arguments.corpus:
            write_generated_corpus(corpus, int(arguments.gigabytes * 1e9))
        commands = list(measure_commands(corpus, Path(folder), arguments.workers))
        sizes = {
            name: arguments.batch_size or BATCH_SIZES.get(name, BATCH_SIZE)
            for name in arguments.models
        }
        steps = list(measure_steps(sizes, arguments.data, Path(folder)))
    write_figures(arguments.output, commands=commands, steps=steps)


def measure_commands(
    corpus: Path, folder: Path, workers: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Train a tokenizer on the corpus, and prepare it with each number of workers."""
    size_bytes = sum(path.stat().st_size for path in corpus.iterdir())
    tokenizer = ["--tokenizer", f"{folder}/tokenizer"]
    calls = {"train-tokenizer": ["--output", f"{folder}/tokenizer"]}
    for number in workers:
        output = ["--output", f"{folder}/shards-{number}"]
        calls[f"prepare --workers {number}"] = [*tokenizer, *output]
    for name, flags in calls.items():
        verb, *given = name.split()
        words = [verb, str(corpus), *given, *flags]
        row = {"command": name, "corpus_bytes": size_bytes, **watch_bertkit(*words)}
        print(
            f"{name:>20}: {row['peak_bytes'] / 1e9:.2f} GB at most, in up to"
            f" {row['num_processes']} processes; {size_bytes / 1e9:.2f} GB of text"
            f" in {row['seconds']:,.0f} s",
            flush=True,
        )
        yield row


def measure_steps(
    sizes: Mapping[str, int], data: Path | None, folder: Path
) -> Iterator[dict[str, Any]]:
    """Each side and model, with its batch size, in a process of its own."""
    shards = data or (prepare_documentation(folder) if sizes else folder)
    for model, size in sizes.items():
        batches = folder / f"batches-{size}"
        batches.mkdir(exist_ok=True)
        write_batches(batches, build_batches(shards, "128", size, 1))
        sides = {name: measure_side(name, model, batches) for name in SIDES}
        ours, theirs = (side["peak_bytes"] for side in sides.values())
        print(
            f"{model:>20}: bertkit {ours / 1e9:.2f} GB, transformers {theirs / 1e9:.2f} GB"
            f" ({theirs / ours:.2f} ×); batch {size}",
            flush=True,
        )
        yield {"model": model, "batch_size": size, **sides}


def measure_side(name: str, model: str, batches: Path) -> dict[str, int]:
    """Bytes held at most before the model was there, and at all, with random weights."""
    with Sides("step_side.py", [name], model, batches, "cpu", "fp32") as sides:
        answers = [sides.ask(name, 0) for _ in range(NUM_STEPS)]
    told = {key: sides.told[name][key] for key in ("libraries_bytes", "parameters")}
    return {**told, "peak_bytes": answers[-1]["peak_bytes"]}


if __name__ == "__main__":
    main()
