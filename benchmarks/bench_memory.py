"""Peak memory: of both corpus commands on generated text, and of a step beside transformers.

    python benchmarks/bench_memory.py --gigabytes 5 --models tiny mini small medium base large

The commands run as a user runs them; their peak is the sum over all their processes of what the
system says each has held at most, so pages that processes share count more than once. The
text is made by `generated_corpus.py`. A step is forward, backward and AdamW in float32, the second
of two, each side in a process of its own on the same 32 examples of up to 128 tokens
(`BATCH_SIZES` names the models that get fewer), libraries included. transformers has SDPA attention
and projects every position on the vocabulary. Linux only.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_step import build_batches, prepare_documentation, write_batch
from generated_corpus import write_generated_corpus
from program import FOLDER, build_parser, run_program, write_figures

BATCH_SIZE = 32
BATCH_SIZES = {"large": 8}  # with 32, transformers needs more than 24 GB
POLL_SECONDS = 0.05


def main() -> None:
    """Print a table, and write the figures as JSON."""
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


def check_system() -> None:
    """End the program where peaks can't be read."""
    if not Path("/proc/self/status").exists():
        raise SystemExit("peaks are read from /proc, which only Linux has")


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
        row = {"command": name, "corpus_bytes": size_bytes, **watch("bertkit", words)}
        print(
            f"{name:>20}: {row['peak_bytes'] / 1e9:.2f} GB at most, in up to"
            f" {row['num_processes']} processes; {size_bytes / 1e9:.2f} GB of text"
            f" in {row['seconds']:,.0f} s",
            flush=True,
        )
        yield row


def watch(module: str, words: Sequence[str]) -> dict[str, Any]:
    """Run a command, and add up what its processes hold at most while it runs.

    Raises:
        CalledProcessError: the command failed; its own words are on standard error.
    """
    return watch_program(["-m", module, *words])


def watch_program(words: Sequence[str]) -> dict[str, Any]:
    """The same of any program of Python's.

    Raises:
        CalledProcessError: it failed; its own words are on standard error.
    """
    command = [sys.executable, *words]
    started = time.monotonic()
    peak_bytes = num_processes = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peaks = [peak for number in list_family(process.pid) if (peak := peak_of(number))]
            peak_bytes = max(peak_bytes, sum(peaks))
            num_processes = max(num_processes, len(peaks))
            time.sleep(POLL_SECONDS)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return {
        "peak_bytes": peak_bytes,
        "num_processes": num_processes,
        "seconds": time.monotonic() - started,
    }


def list_family(number: int) -> Iterator[int]:
    """A process and all its descendants, as far as they are still there."""
    yield number
    try:
        children = [
            int(child)
            for task in Path(f"/proc/{number}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:  # it ended
        return
    for child in children:
        yield from list_family(child)


def peak_of(process: int | str) -> int:
    """Bytes that a process has held at most; 0 when it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return 1024 * int(peaks[0]) if peaks else 0


def measure_steps(
    sizes: Mapping[str, int], data: Path | None, folder: Path
) -> Iterator[dict[str, Any]]:
    """Each side and model, with its batch size, in a process of its own."""
    if sizes:
        shards = data or prepare_documentation(folder)
        for size in sorted(set(sizes.values())):
            (batch,) = build_batches(shards, "128", size, 1)
            write_batch(folder, str(size), batch)
    for name, size in sizes.items():
        sides = {
            side: json.loads(run_program(FOLDER / "step_memory.py", side, name, size, folder))
            for side in ("bertkit", "transformers")
        }
        ours, theirs = (side["peak_bytes"] for side in sides.values())
        print(
            f"{name:>20}: bertkit {ours / 1e9:.2f} GB, transformers {theirs / 1e9:.2f} GB"
            f" ({theirs / ours:.2f} ×); batch {size}",
            flush=True,
        )
        yield {"model": name, "batch_size": size, **sides}


if __name__ == "__main__":
    main()
