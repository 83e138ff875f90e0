"""What every benchmark's program shares: flags, what it ran on, the file of figures, its sides.

A side is a program of its own that answers with a line of JSON: once when it is ready, and then
whenever it has done what a line of standard input asks for.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
DATA = Path("../shared/data")


def build_parser(
    documentation: str, output: str, *, data: Path | None = DATA
) -> argparse.ArgumentParser:
    """The parser of a benchmark.

    Args:
        documentation: of the benchmark; its first line describes the program.
        output: the name of its file in `benchmarks/results`, for `--output`.
        data: the default of `--data`, a folder of public data sets; None for no such flag.
    """
    parser = argparse.ArgumentParser(description=documentation.split("\n", maxsplit=1)[0])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results") / output)
    if data is not None:
        parser.add_argument("--data", type=Path, default=data, help="folder of public data sets")
    return parser


def describe_machine() -> dict[str, Any]:
    """What it ran on, and the arguments, without the folders that paths lead through."""
    import torch

    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": version("transformers"),
        "arguments": [Path(word).name for word in sys.argv[1:]],
    }


def write_figures(path: Path, machine: Mapping[str, Any] | None = None, **figures: Any) -> None:
    """Write figures as JSON, with what they were taken on and, of that, `machine` besides."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": {**describe_machine(), **(machine or {})}, **figures}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def start_side(script: str, *words: object) -> subprocess.Popen[str]:
    """Begin the program of a side, whose idle threads take nothing from the others."""
    return subprocess.Popen(
        [sys.executable, str(FOLDER / script), *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ},
    )


def ask(side: subprocess.Popen[str], order: object = None) -> dict[str, Any]:
    """Tell a side what to do, where there is an order, and read its answer."""
    assert side.stdin is not None
    assert side.stdout is not None
    if order is not None:
        side.stdin.write(f"{order}\n")
        side.stdin.flush()
    line = side.stdout.readline()
    if not line:
        raise SystemExit("a side ended, for the reason above")
    answer: dict[str, Any] = json.loads(line)
    return answer


def run_program(*words: object, **variables: str) -> str:
    """Run a program of Python's to its end, and give what it prints.

    `variables` are of its environment.

    Raises:
        RuntimeError: it failed.
    """
    command = [sys.executable, *map(str, words)]
    environment = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:])} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def run_bertkit(*words: object) -> str:
    """Run the command `bertkit` to its end, and give what it prints."""
    return run_program("-m", "bertkit", *words)
