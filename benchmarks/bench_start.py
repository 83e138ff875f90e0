"""How long the command line takes from nothing to its answer, in how much memory and on what disk.

    python benchmarks/bench_start.py --rounds 9
    python benchmarks/bench_start.py --rounds 0 --environments plain train

Each command is a process of its own, in turns, with the files in the system's cache: the list of
commands, the similarity of two texts with the bundled model, and the class of a text by a folder
that was fine-tuned from it. Beside them stand Python that only imports torch, and
sentence-transformers with the similarity of the same texts by the same weights. Memory is the peak
of the process (`ru_maxrss`). `--python` names the interpreter of another environment for bertkit's
commands, such as one without torch.

`--environments` makes virtual environments with nothing but bertkit, the bundled model and the
extras that are named (`plain` has none), of the versions of `constraints.txt`, and adds up their
files as `du -sm` does. That needs the network, and minutes.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minilm import find_minilm
from program import PASSIVE, build_parser, list_versions, run_program, write_figures
from turns import begin_table, format_row, order_turn, spread

ROOT = Path(__file__).resolve().parents[1]
TEXTS = ("The parcel never arrived.", "Where is my order?")
THEIRS = """
import sys
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu")
vectors = model.encode(sys.argv[2:], normalize_embeddings=True)
print(float(vectors[0] @ vectors[1]))
"""
FINE_TUNING = "--epochs 1 --batch-size 8 --device cpu --max-length 32"
PLAIN = "plain"
NUM_SHOWN = 8  # of the packages of an environment, the largest
BLOCK_BYTES = 512  # the unit of `st_blocks`
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Run:
    """What one process took."""

    seconds: float
    mebibytes: float  # of its memory, at most


def main() -> None:
    parser = build_parser(__doc__, "start.json", data=None, rounds=9)
    parser.add_argument("--python", default=sys.executable, help="interpreter of our commands")
    parser.add_argument("--model", type=Path, help="fine-tuned folder; by default one is trained")
    parser.add_argument("--environments", nargs="*", default=(), metavar="EXTRA")
    arguments = parser.parse_args()
    content: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.rounds:
            model = arguments.model or train(Path(scratch))
            sides = list_sides(arguments.python, model)
            content["starts"] = measure_starts(sides, arguments.rounds)
            print(tabulate(content["starts"]), flush=True)
        for extra in arguments.environments:
            sizes = measure_environment(Path(scratch) / extra, extra)
            content.setdefault("environments", {})[extra] = sizes
            print(f"{extra}: {sizes}", flush=True)
    write_figures(arguments.output, list_versions("openvino", "sentence-transformers"), **content)


def train(folder: Path) -> Path:
    """Fine-tune the bundled model on a few rows."""
    rows = [f"{text},{label}" for text, label in zip(TEXTS * 8, ("sent", "asked") * 8, strict=True)]
    (folder / "rows.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    words = f"-m bertkit finetune classify --train {folder}/rows.csv --dev {folder}/rows.csv"
    run_program(*words.split(), *FINE_TUNING.split(), "--output", folder / "model")
    return folder / "model"


def list_sides(python: str, model: Path) -> dict[str, list[str]]:
    """The words of each process."""
    ours = [python, "-m", "bertkit"]
    return {
        "--help": [*ours, "--help"],
        "similarity": [*ours, "similarity", *TEXTS],
        "classify": [*ours, "classify", str(model), TEXTS[0]],
        "import torch": [sys.executable, "-c", "import torch"],
        "sentence-transformers": [sys.executable, "-c", THEIRS, str(find_minilm()), *TEXTS],
    }


def measure_starts(sides: Mapping[str, Sequence[str]], rounds: int) -> dict[str, Any]:
    """Seconds and memory of each process, in turns; the first round isn't counted."""
    names, runs = list(sides), {name: list[Run]() for name in sides}
    for number in range(rounds + 1):
        for name in order_turn(names, number):
            run = start(sides[name])
            if number:
                runs[name].append(run)
    return {
        name: {
            "seconds": spread([run.seconds for run in done]),
            "mebibytes": spread([run.mebibytes for run in done]),
        }
        for name, done in runs.items()
    }


def start(words: Sequence[str]) -> Run:
    """Run a process to its end; compiled modules are kept, as an installation has them."""
    environment = {**PASSIVE, **os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    process = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    )
    assert process.stderr is not None
    told = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{told.decode()[-2000:]}")
    return Run(seconds, usage.ru_maxrss / 1024)


def measure_environment(folder: Path, extra: str) -> dict[str, Any]:
    """Install bertkit and its model into an environment, and add up what it has, in mebibytes."""
    run_program("-m", "venv", folder)
    package = str(ROOT) if extra == PLAIN else f"{ROOT}[{extra}]"
    words = ["-m", "pip", "install", "--quiet", "--no-input", "--constraint"]
    paths: list[str | Path] = [ROOT / "constraints.txt", package, ROOT / "models" / "minilm"]
    subprocess.run([folder / "bin" / "python", *words, *paths], check=True)
    (packages,) = folder.glob("lib/*/site-packages")
    sizes = {path.name: add_up(path) for path in packages.iterdir() if path.is_dir()}
    largest = sorted(sizes, key=sizes.__getitem__, reverse=True)[:NUM_SHOWN]
    return {"all": add_up(folder), **{name: sizes[name] for name in largest}}


def add_up(folder: Path) -> float:
    paths = (path for path in folder.rglob("*") if not path.is_symlink())
    return round(sum(path.stat().st_blocks for path in paths) * BLOCK_BYTES / MEBIBYTE, 1)


def tabulate(starts: Mapping[str, Any]) -> str:
    lines = [begin_table("process", "seconds", "memory")]
    for name, one in starts.items():
        seconds, memory = one["seconds"], one["mebibytes"]
        lines.append(
            format_row(
                name,
                f"{seconds['median']:.2f} ({seconds['low']:.2f}–{seconds['high']:.2f})",
                f"{memory['median']:.0f} MiB",
            )
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
