"""Progress display of a run: a live panel on a terminal, otherwise a line every few seconds."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from bertkit.base.progress import Launch, announce, estimate_seconds_left, open_console
from bertkit.reports.text import format_metric, format_number, format_percent

LINE_INTERVAL_SECONDS = 15.0
SMOOTHING = 0.95


class _Column(NamedTuple):
    """A displayed metric: its key, its heading and its format."""

    name: str
    heading: str
    format: Callable[[float], str]


class _Smoothed:
    """Exponential moving averages of the displayed metrics, so that the numbers are readable."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self._weight = 0.0

    def update(self, values: Mapping[str, float]) -> None:
        self._weight = SMOOTHING * self._weight + 1.0 - SMOOTHING
        share = (1.0 - SMOOTHING) / self._weight
        for name, value in values.items():
            before = self.values.get(name, value)
            self.values[name] = before + share * (value - before)


class Display:
    """Shows a run as a line now and then."""

    def __init__(self, num_steps: int, step: int, columns: Sequence[_Column]) -> None:
        self._num_steps, self._columns = num_steps, columns
        self._first, self._started = step, time.monotonic()
        self._last = self._started
        self._train = _Smoothed()

    def show_step(self, step: int, values: Mapping[str, float]) -> None:
        """Show a training step; called after each."""
        self._train.update(values)
        now = time.monotonic()
        if now - self._last < LINE_INTERVAL_SECONDS and step < self._num_steps:
            return
        self._last = now
        seconds, num_done = now - self._started, max(1, step - self._first)
        left = estimate_seconds_left(seconds, num_done, self._num_steps - step)
        self._write(step, self._train.values, f"{left:,.0f} s left")

    def show_evaluation(
        self, step: int, values: Mapping[str, float], *, is_best: bool = False
    ) -> None:
        """Show an evaluation; `is_best` if the watched metric is the best so far."""
        self._write(step, values, "held-out, best so far" if is_best else "held-out")

    def plan(self, num_steps: int) -> None:
        """Show another number of steps from now on."""
        self._num_steps = num_steps

    def say(self, text: str) -> None:
        """Print a message on a line of its own."""
        announce(text)

    def _write(self, step: int, values: Mapping[str, float], rest: str) -> None:
        cells = zip(self._columns, _cells(values, self._columns), strict=True)
        shown = "  ".join(f"{column.heading} {cell}" for column, cell in cells if cell)
        announce(f"step {step:,}/{self._num_steps:,}  {shown}  {rest}")


class _Panel(Display):
    """Shows a run as a bar and a table, drawn again several times a second."""

    def __init__(
        self, num_steps: int, step: int, columns: Sequence[_Column], console: Console
    ) -> None:
        super().__init__(num_steps, step, columns)
        self._console = console
        self._held_out: Mapping[str, float] = {}
        self._best: tuple[str, Mapping[str, float]] = ("", {})
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

    def show_evaluation(
        self, step: int, values: Mapping[str, float], *, is_best: bool = False
    ) -> None:
        self._held_out = values
        if is_best:
            self._best = (f"best, step {step:,}", values)

    def plan(self, num_steps: int) -> None:
        self._progress.update(self._task, total=num_steps)

    def say(self, text: str) -> None:
        self._console.print(text, markup=False)

    def __rich__(self) -> Group:
        table = Table(box=None, pad_edge=False)
        for heading in ("", *(column.heading for column in self._columns)):
            table.add_column(heading, justify="right")
        rows = (("training", self._train.values), ("held-out", self._held_out), self._best)
        for heading, values in rows:
            if values:
                table.add_row(heading, *_cells(values, self._columns))
        return Group(self._progress, table)


@contextmanager
def show_training(
    num_steps: int, step: int, metrics: Mapping[str, str], watched: str | None = None
) -> Iterator[Display]:
    """Show a run's progress on standard error, as a panel on a terminal and as lines elsewhere.

    `metrics` are the metrics from 0 to 1 to display, each with its heading; `watched` selects the
    best checkpoint and may be one of them.
    """
    columns = [
        _Column("loss", "loss", format_number),
        *(_Column(name, heading, format_percent) for name, heading in metrics.items()),
    ]
    if watched is not None and watched not in (column.name for column in columns):
        columns.append(_Column(watched, watched, partial(format_metric, watched)))
    columns += [
        _Column("tokens_per_second", "tokens/s", "{:,.0f}".format),
        _Column("share_of_peak", "machine use", format_percent),
    ]
    console = open_console()
    if not console.is_terminal or not Launch.read().is_first:
        yield Display(num_steps, step, columns)
        return
    panel = _Panel(num_steps, step, columns, console)
    with Live(panel, console=console, refresh_per_second=4, transient=False):
        yield panel


def _cells(values: Mapping[str, float], columns: Sequence[_Column]) -> tuple[str, ...]:
    """Return the formatted values, in column order; empty for unknown ones."""
    return tuple(
        column.format(values[column.name]) if column.name in values else "" for column in columns
    )
