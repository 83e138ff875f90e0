"""A job in parts by one process, by two, and by two tasks of Ray: speed, memory, the same bytes.

    python benchmarks/bench_parts.py --megabytes 320 --files 16 --texts 20000

`prepare` reads generated text (`generated_corpus.py`), `embed` generated sentences, with a tiny
model of random weights or with `--model`; each has as many files as `--files` says, and one thread
a worker. The commands run as a user runs them: seconds are those of the whole command, with the
start of Python, of the workers and of a Ray of one machine; rates are over these. Peaks add up all
processes of a command, Ray's own too. The runs are interleaved, `--rounds` times, with medians.
Linux only.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertkit.base.checksums import record_file
from bertkit.base.output import LOCK_FILE
from generated_corpus import write_text
from peaks import check_system, make_model, watch_bertkit, write_texts
from program import build_parser, list_versions, write_figures
from turns import spread

WAYS = {
    "one process": "--workers 1",
    "two processes": "--workers 2",
    "two tasks of Ray": "--workers 2 --run-on ray",
}
OF_EMBED = ("--precision", "fp32", "--pooling", "mean")


def main() -> None:
    parser = build_parser(__doc__, "parts.json", data=None, rounds=1)
    parser.add_argument("--megabytes", type=float, default=64.0, help="of text to prepare")
    parser.add_argument("--texts", type=int, default=2000, help="sentences to embed")
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--model", type=Path, help="in place of a tiny one")
    arguments = parser.parse_args()
    check_system()
    os.environ["RAY_ADDRESS"] = "local"  # of the commands, each of which starts its own
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        commands = write_inputs(folder, arguments)
        rows = [
            row
            for name, words in commands.items()
            for row in compare(name, words, folder, arguments.rounds)
        ]
    write_figures(arguments.output, list_versions("ray"), rows=rows)


def write_inputs(folder: Path, arguments: Any) -> dict[str, list[str]]:
    """Write texts, a tokenizer and a model; return the commands, without their output."""
    (folder / "corpus").mkdir()
    (folder / "texts").mkdir()
    num_bytes = int(arguments.megabytes * 1e6 / arguments.files)
    for number in range(arguments.files):
        write_text(folder / "corpus" / f"{number}.txt", num_bytes, number)
        write_texts(folder / "texts" / f"{number}.txt", arguments.texts // arguments.files)
    made = make_model(folder / "tiny", folder / "texts" / "0.txt")
    model = str(arguments.model or made)
    return {
        "prepare": [str(folder / "corpus"), "--tokenizer", str(folder / "tiny" / "tokenizer")],
        "embed": [str(folder / "texts"), "--model", model, *OF_EMBED],
    }


def compare(command: str, words: Sequence[str], folder: Path, rounds: int) -> list[dict[str, Any]]:
    """Run one command in each way, in turn, and hold what they wrote against each other."""
    inputs = folder / ("corpus" if command == "prepare" else "texts")
    megabytes = sum(path.stat().st_size for path in inputs.iterdir()) / 1e6
    measured: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    written: dict[str, Mapping[str, str]] = {}
    for number in range(rounds):
        for way, flags in WAYS.items():
            output = folder / f"{command}-{number}-{flags.replace(' ', '')}"
            call = [command, *words, "--output", str(output), *flags.split(), "--threads", "1"]
            measured[way].append(watch_bertkit(*call))
            written[way] = hash_files(output)
    if any(found != written["one process"] for found in written.values()):
        raise SystemExit(f"{command} wrote other bytes in another way")
    return [summarize(command, way, megabytes, runs) for way, runs in measured.items()]


def hash_files(folder: Path) -> dict[str, str]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != LOCK_FILE]
    return {str(path.relative_to(folder)): record_file(path).sha256 for path in paths}


def summarize(
    command: str, way: str, megabytes: float, runs: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    seconds = spread([run["seconds"] for run in runs])
    row = {
        "command": command,
        "way": way,
        "megabytes": megabytes,
        "seconds": seconds,
        "megabytes_per_second": megabytes / seconds["median"],
        "peak_bytes": max(run["peak_bytes"] for run in runs),
        "num_processes": max(run["num_processes"] for run in runs),
    }
    print(
        f"{command:>8}, {way:>16}: {row['megabytes_per_second']:6.2f} MB/s,"
        f" {seconds['median']:.1f} s ({seconds['low']:.1f}-{seconds['high']:.1f}),"
        f" {row['peak_bytes'] / 1e6:,.0f} MB at most in up to {row['num_processes']} processes",
        flush=True,
    )
    return row


if __name__ == "__main__":
    main()
