"""What a person sees of a run: a live panel on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

LINE_INTERVAL_SECONDS = 15.0
SMOOTHING = 0.95


class Display(Protocol):
    """What the loop tells a display."""

    def show_step(self, step: int, values: Mapping[str, float]) -> None:
        """After each step."""

    def show_evaluation(self, step: int, values: Mapping[str, float]) -> None:
        """After each evaluation."""

    def say(self, text: str) -> None:
        """An event worth a line."""


@contextmanager
def show_training(num_steps: int, step: int, shares: Mapping[str, str]) -> Iterator[Display]:
    """Show a run on standard error, as it fits.

    Args:
        num_steps: steps of the whole run.
        step: steps already done.
        shares: metrics from 0 to 1 that are worth watching, and what to call each.
    """
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _Lines(num_steps, step, shares)
        return
    panel = _Panel(num_steps, step, shares, console)
    with Live(panel, console=console, refresh_per_second=4, transient=False):
        yield panel


class _Smoothed:
    """Exponential means of what a display shows, so that numbers can be read."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self._weight = 0.0

    def update(self, values: Mapping[str, float]) -> None:
        self._weight = SMOOTHING * self._weight + 1.0 - SMOOTHING
        share = (1.0 - SMOOTHING) / self._weight
        for name, value in values.items():
            before = self.values.get(name, value)
            self.values[name] = before + share * (value - before)


class _Panel:
    def __init__(
        self, num_steps: int, step: int, shares: Mapping[str, str], console: Console
    ) -> None:
        self._shares, self._console = shares, console
        self._train, self._held_out = _Smoothed(), dict[str, float]()
        self._progress = Progress(
            TextColumn("step"),
            MofNCompleteColumn(),
            BarColumn(bar_width=40),
            TimeRemainingColumn(),
            TextColumn("left"),
        )
        self._task = self._progress.add_task("", total=num_steps, completed=step)

    def show_step(self, step: int, values: Mapping[str, float]) -> None:
        self._train.update(values)
        self._progress.update(self._task, completed=step)

    def show_evaluation(self, step: int, values: Mapping[str, float]) -> None:
        self._held_out = dict(values)

    def say(self, text: str) -> None:
        self._console.print(text, markup=False)

    def __rich__(self) -> Group:
        table = Table(box=None, pad_edge=False)
        for heading in ("", *_headings(self._shares)):
            table.add_column(heading, justify="right")
        for heading, values in (("training", self._train.values), ("held-out", self._held_out)):
            if values:
                table.add_row(heading, *_cells(values, self._shares))
        return Group(self._progress, table)


class _Lines:
    def __init__(self, num_steps: int, step: int, shares: Mapping[str, str]) -> None:
        self._num_steps, self._shares = num_steps, shares
        self._first, self._started = step, time.monotonic()
        self._last = self._started
        self._train = _Smoothed()

    def show_step(self, step: int, values: Mapping[str, float]) -> None:
        self._train.update(values)
        now = time.monotonic()
        if now - self._last < LINE_INTERVAL_SECONDS and step < self._num_steps:
            return
        self._last = now
        pace = (now - self._started) / max(1, step - self._first)
        self._write(step, self._train.values, f"{pace * (self._num_steps - step):,.0f} s left")

    def show_evaluation(self, step: int, values: Mapping[str, float]) -> None:
        self._write(step, values, "held-out")

    def say(self, text: str) -> None:
        sys.stderr.write(text + "\n")

    def _write(self, step: int, values: Mapping[str, float], rest: str) -> None:
        cells = zip(_headings(self._shares), _cells(values, self._shares), strict=True)
        shown = "  ".join(f"{heading} {cell}" for heading, cell in cells if cell)
        sys.stderr.write(f"step {step:,}/{self._num_steps:,}  {shown}  {rest}\n")


def _headings(shares: Mapping[str, str]) -> tuple[str, ...]:
    return ("loss", *shares.values(), "tokens/s", "of peak")


def _cells(values: Mapping[str, float], shares: Mapping[str, str]) -> tuple[str, ...]:
    """What stands below the headings; empty where it isn't known."""
    forms = {"loss": ".3f", **dict.fromkeys(shares, ".1%")}
    forms |= {"tokens_per_second": ",.0f", "share_of_peak": ".0%"}
    return tuple(
        format(values[name], form) if name in values else "" for name, form in forms.items()
    )
