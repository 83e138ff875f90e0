"""Runs that are kept as lines of a file: what was run isn't run again."""

import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from program import describe_machine

Row = dict[str, Any]


class Cells:
    """A file with a line for each run; a run's `cell` is a data class that says what it is.

    Args:
        path: of the file.
        kind: the class of the cells.
    """

    def __init__(self, path: Path, kind: type[Any]) -> None:
        self.path, self.kind = path, kind

    def rows(self) -> list[Row]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text("utf-8").splitlines()]

    def run(self, cells: Iterable[Any], run: Callable[[Any], Row], num_jobs: int = 1) -> None:
        """Run what is missing, some at a time, and write each as soon as it is there.

        One that failed is told, and is missing the next time too.
        """
        done = {self.kind(**row["cell"]) for row in self.rows()}
        missing = [cell for cell in dict.fromkeys(cells) if cell not in done]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(num_jobs) as workers:
            futures = [workers.submit(self._run, cell, run) for cell in missing]
            try:
                for number, future in enumerate(as_completed(futures), start=1):
                    print(f"{number} of {len(missing)}: {future.result()}", flush=True)
            finally:
                workers.shutdown(cancel_futures=True)

    def _run(self, cell: Any, run: Callable[[Any], Row]) -> str:
        started = time.perf_counter()
        try:
            found = run(cell)
        except RuntimeError as error:
            return str(error)
        seconds = round(time.perf_counter() - started, 1)
        row = {"cell": asdict(cell), **found, "seconds": seconds, "machine": describe_machine()}
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")
        return f"{cell}: {found} in {seconds:.1f} s"


def show_spread(values: Sequence[float], digits: int) -> str:
    """The median, the least, the greatest, and how many there are."""
    if not values:
        return "–"
    middle, low, high = (f"{each(values):.{digits}f}" for each in (statistics.median, min, max))
    return f"{middle} ({low}–{high}; {len(values)})" if len(values) > 1 else f"{middle} (one run)"


def choose(rows: Iterable[Row], kind: type[Any], **wanted: Any) -> list[Row]:
    """The rows whose cells are as wanted; what a row doesn't tell of its cell has its default."""
    return [row for row in rows if wanted.items() <= asdict(kind(**row["cell"])).items()]
