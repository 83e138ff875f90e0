"""One part of `make gpu`: its command, its limit, and what came of it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_parts import ROOT, Part, list_gpu_tests
from minilm import STAND_IN, VARIABLE, has_package

KEPT_CHARACTERS = 12_000  # of what a part prints

Record = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where a run reads and writes.

    Attributes:
        output: the results.
        work: what is made on the way.
        data: a folder of public data sets; None where there is none.
    """

    output: Path
    work: Path
    data: Path | None

    @property
    def results(self) -> Path:
        """The file of all parts' results."""
        return self.output / "results.json"


def find_stand_in(place: Place) -> Path | None:
    """The model of the same sizes, where it was made."""
    folder = place.work / STAND_IN
    return folder if folder.exists() else None


def run_part(part: Part, place: Place) -> Record:
    """Run one part to its end, or to its limit."""
    with tempfile.TemporaryDirectory() as scratch:
        figures = Path(scratch) / "figures.json"
        command = build_command(part, place, figures)
        with (Path(scratch) / "errors").open("w+", encoding="utf-8", errors="replace") as errors:
            state, seconds, printed = watch(command, build_environment(place), part, errors)
            errors.seek(0)
            complaints = errors.read()
        found = read_figures(figures)
    if state != "done":
        print(complaints[-2000:], file=sys.stderr, flush=True)
    return {
        "state": state,
        "seconds": seconds,
        "command": shorten(command, place),
        "printed": printed[-KEPT_CHARACTERS:],
        "errors": complaints[-KEPT_CHARACTERS // 2 :] if state != "done" else "",
        "figures": found,
        "model": "stand-in with random weights" if VARIABLE in build_environment(place) else None,
    }


def watch(
    command: Sequence[str], environment: Mapping[str, str], part: Part, errors: Any
) -> tuple[str, float, str]:
    """State, seconds and output of a program, which is ended at its limit with all it began."""
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=errors,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    assert process.stdout is not None
    is_late = threading.Event()

    def expire() -> None:
        is_late.set()
        end(process)

    timer = threading.Timer(60.0 * part.minutes, expire)
    timer.start()
    lines: list[str] = []
    state = None
    with process.stdout:
        try:
            for line in process.stdout:
                lines.append(line)
                print(line, end="", flush=True)
            process.wait()
        except KeyboardInterrupt:
            state = "stopped"
        finally:
            timer.cancel()
            end(process)
    if state is None and is_late.is_set():
        state = f"not finished in {part.minutes:g} minutes"
    state = state or ("done" if process.returncode == 0 else f"failed ({process.returncode})")
    return state, time.monotonic() - started, "".join(lines)


def end(process: subprocess.Popen[str]) -> None:
    """End a program and what it began, which share a session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def build_command(part: Part, place: Place, figures: Path) -> list[str]:
    """The command of a part."""
    folders = {
        "{data}": str(place.data),
        "{shards}": str(place.work / "shards"),
        "{work}": str(place.work),
        "{output}": str(figures),
    }
    words: list[str] = []
    for word in part.words:
        if word == "{tests}":
            words += list_gpu_tests()
            continue
        for name, path in folders.items():
            word = word.replace(name, path)
        words.append(word)
    return [sys.executable, *words]


def build_environment(place: Place) -> dict[str, str]:
    """The sources, nothing from the network, and the model that is there."""
    sources = (str(ROOT / folder) for folder in ("src", "studies", "examples/demo"))
    paths = [*sources, os.environ.get("PYTHONPATH", "")]
    stand_in = None if has_package() else find_stand_in(place)
    return {
        "OMP_WAIT_POLICY": "PASSIVE",
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
        **({VARIABLE: str(stand_in)} if stand_in else {}),
    }


def shorten(command: Sequence[str], place: Place) -> str:
    """A command without the folders of this machine."""
    folders = [(place.data, "data"), (place.work, "work"), (ROOT, ".")]
    words = ["python", *command[1:]]
    for folder, name in folders:
        words = [word.replace(str(folder), name) for word in words]
    return " ".join(Path(word).name if Path(word).is_absolute() else word for word in words)


def read_figures(path: Path) -> Any:
    """What a benchmark wrote: JSON, or a line of JSON a run; None where it wrote nothing."""
    if not path.exists():
        return None
    text = path.read_text("utf-8")
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]
