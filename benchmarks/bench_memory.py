"""Peak memory: of both corpus commands on generated text, and of a step beside transformers.

    python benchmarks/bench_memory.py --gigabytes 5 --models tiny mini small medium base large

The commands run as a user runs them; their peak is the sum over all their processes of what the
system says each has held at most, so pages that processes share count more than once. The
text is made by `generated_corpus.py`. A step is forward, backward and AdamW in float32, the second
of two, each side in a process of its own on the same 32 examples of up to 128 tokens
(`BATCH_SIZES` names the models that get fewer), libraries included. transformers has SDPA attention
and projects every position on the vocabulary. Linux only.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from generated_corpus import write_generated_corpus

BATCH_SIZE = 32
BATCH_SIZES = {"large": 8}  # with 32, transformers needs more than 24 GB
POLL_SECONDS = 0.05


def main() -> None:
    """Print a table, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--gigabytes", type=float, default=0.2)
    parser.add_argument("--corpus", type=Path, help="made already, in place of a generated one")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--models", nargs="*", default=["tiny", "mini", "small"])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/memory.json"))
    arguments = parser.parse_args()
    if not Path("/proc/self/status").exists():
        raise SystemExit("peaks are read from /proc, which only Linux has")
    with tempfile.TemporaryDirectory() as folder:
        corpus = arguments.corpus or Path(folder) / "corpus"
        if not arguments.corpus:
            write_generated_corpus(corpus, int(arguments.gigabytes * 1e9))
        commands = list(measure_commands(corpus, Path(folder), arguments.workers))
        steps = list(measure_steps(arguments.models, Path(folder)))
    machine: dict[str, Any] = {
        "system": platform.platform(),
        "arguments": [Path(word).name for word in sys.argv[1:]],
    }
    machine |= {name: version(name) for name in ("torch", "transformers")}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    result = {"machine": machine, "commands": commands, "steps": steps}
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")


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


def measure_steps(models: Sequence[str], folder: Path) -> Iterator[dict[str, Any]]:
    """Each side and model in a process of its own."""
    sizes = sorted({str(BATCH_SIZES.get(name, BATCH_SIZE)) for name in models})
    if sizes:
        measure_apart("batches", *sizes, str(folder))
    for name in models:
        size = BATCH_SIZES.get(name, BATCH_SIZE)
        sides = {
            side: json.loads(measure_apart(side, name, str(size), str(folder)))
            for side in ("bertkit", "transformers")
        }
        ours, theirs = (side["peak_bytes"] for side in sides.values())
        print(
            f"{name:>20}: bertkit {ours / 1e9:.2f} GB, transformers {theirs / 1e9:.2f} GB"
            f" ({theirs / ours:.2f} ×); batch {size}",
            flush=True,
        )
        yield {"model": name, "batch_size": size, **sides}


def measure_apart(*words: str) -> str:
    """Run `step_memory.py`; returns what it printed.

    Raises:
        CalledProcessError: it failed; its own words are on standard error.
    """
    command = [sys.executable, str(Path(__file__).with_name("step_memory.py")), *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
