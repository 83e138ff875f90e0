"""What every benchmark's program shares: flags, what it ran on, the file of figures, programs."""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

Answer = dict[str, Any]  # of a side to what it was told to do
FOLDER = Path(__file__).parent
DATA = Path("../shared/data")
PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE"}  # a side's idle threads take nothing from the others


def build_parser(
    documentation: str, output: str, *, data: Path | None = DATA, rounds: int | None = None
) -> argparse.ArgumentParser:
    """The parser of a benchmark.

    Args:
        documentation: of the benchmark; its first line describes the program.
        output: the name of its file in `benchmarks/results`, for `--output`.
        data: the default of `--data`, a folder of public data sets; None for no such flag.
        rounds: the default of `--rounds`; None for no such flag.
    """
    parser = argparse.ArgumentParser(description=documentation.split("\n", maxsplit=1)[0])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results") / output)
    if data is not None:
        parser.add_argument("--data", type=Path, default=data, help="folder of public data sets")
    if rounds is not None:
        parser.add_argument("--rounds", type=int, default=rounds)
    return parser


def describe_machine() -> dict[str, Any]:
    """What it ran on, and the arguments, without the folders that paths lead through."""
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **list_versions("torch", "transformers"),
        "arguments": [Path(word).name for word in sys.argv[1:]],
    }


def list_versions(*packages: str) -> dict[str, str]:
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def write_figures(path: Path, machine: Mapping[str, Any] | None = None, **figures: Any) -> None:
    """Write figures as JSON, with what they were taken on and, of that, `machine` besides."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": {**describe_machine(), **(machine or {})}, **figures}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def run_program(*words: object, **variables: str) -> str:
    """Run a program of Python's to its end, and give what it prints.

    `variables` are of its environment.

    Raises:
        RuntimeError: it failed.
    """
    command = [sys.executable, *map(str, words)]
    environment = {**PASSIVE, **os.environ, **variables}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:])} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def run_bertkit(*words: object) -> str:
    """Run the command `bertkit` to its end, and give what it prints."""
    return run_program("-m", "bertkit", *words)


def be_quiet() -> None:
    """No notices and bars of transformers."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


def answer(content: Answer) -> None:
    print(json.dumps(content), flush=True)


def obey(do: Callable[[str], Answer]) -> None:
    for line in sys.stdin:
        answer(do(line))
