"""The log of a run, and callbacks for each step and evaluation."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from bertkit.base import storage
from bertkit.base.checksummed_json import add_row_checksum, is_intact_row, verify_row
from bertkit.base.errors import DamagedFileError, pluralize, storage_errors
from bertkit.base.files import durable_file, write_all
from bertkit.base.json_files import with_nulls
from bertkit.base.progress import announce

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

OnEvent = Callable[[int, Mapping[str, float]], object]

_OBSERVERS: ContextVar[Mapping[str, OnEvent | None]] = ContextVar("observers", default={})  # noqa: B039 - it is only read


@contextmanager
def observe(on_step: OnEvent | None, on_evaluation: OnEvent | None) -> Iterator[None]:
    """Call these observers for every run in the block.

    Args:
        on_step: called after each applied step.
        on_evaluation: called with the number of steps so far and the held-out metrics.
    """
    token = _OBSERVERS.set({"step": on_step, "evaluation": on_evaluation})
    try:
        yield
    finally:
        _OBSERVERS.reset(token)


def tell_observer(
    event: Literal["step", "evaluation"], step: int, values: Mapping[str, float]
) -> None:
    """Call an observer of the innermost `observe` block, if there is one."""
    if (call := _OBSERVERS.get().get(event)) is not None:
        call(step, values)


CLOCK_FIELDS = ("tokens_per_second", "share_of_peak", "elapsed_seconds")
NOT_METRICS = frozenset({"event", "step", "tokens"})
LogRow: TypeAlias = dict[str, Any]  # its event, its step, and what else the event has


class SilentLog:
    """Drops all rows."""

    num_rows = 0

    def write(self, event: str, step: int, **values: Any) -> None:
        """Drop a row."""

    def sync(self) -> None:
        """There is nothing to sync."""


class RunLog:
    """Appends rows to the log.

    Opening it drops rows written after the resumed checkpoint, at whose saving `num_rows` were
    synced.
    """

    def __init__(self, path: Path, step: int, num_rows: int) -> None:
        self.path, self.num_rows = path, 0
        if num_rows and not path.exists():
            announce(f"{path} is missing; starting a new log")
        with durable_file(path) as file:
            for line, _ in _read_lines(path, num_rows):
                file.write(line)
                self.num_rows += 1
        with storage_errors(path, "written"):
            self._descriptor = storage.open_end(path)
        self._folder = path.parent / "tensorboard"
        self._tensorboard: SummaryWriter | None = None
        try:
            with storage_errors(self._folder, "written"):
                if find_spec("tensorboard") is not None:
                    from torch.utils import tensorboard

                    self._tensorboard = tensorboard.SummaryWriter(
                        str(self._folder),
                        purge_step=step + 1,  # later events are hidden
                    )
        except BaseException:
            self._close()
            raise

    def write(self, event: str, step: int, **values: Any) -> None:
        """Append one row; numbers that aren't finite become null, because JSON can't hold them."""
        values = with_nulls(values)
        row = add_row_checksum({"event": event, "step": step, **values})
        with storage_errors(self.path, "written"):
            write_all(self._descriptor, memoryview(f"{row}\n".encode()))
        self.num_rows += 1
        if self._tensorboard is not None:
            with storage_errors(self._folder, "written"):
                for name, value in values.items():
                    if isinstance(value, int | float):
                        self._tensorboard.add_scalar(f"{event}/{name}", value, step)

    def sync(self) -> None:
        """Sync all rows to disk; called before each checkpoint."""
        with storage_errors(self.path, "written"):
            storage.sync(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()
        if self._tensorboard is not None:
            with suppress(OSError):  # the log is complete; don't hide an error of the block
                self._tensorboard.close()

    def _close(self) -> None:
        with suppress(OSError):  # the rows that matter are synced; don't hide an error of the block
            storage.close(self._descriptor)


def read_log(path: Path, num_rows: int | None = None) -> Iterator[LogRow]:
    """Yield the rows of a run's log, in order; nothing if there is no log.

    The first `num_rows` must be intact, and what a crash left after them isn't read. If None, every
    line must be a valid row, except a truncated last one.
    """
    for _, row in _read_lines(path, num_rows):
        yield row


def read_evaluation(path: Path, step: int | None = None) -> dict[str, float]:
    """Return the metrics of the evaluation after a step, by default of the last evaluation.

    Empty if the log has no such evaluation.
    """
    found = {}
    for row in read_log(path):
        if row["event"] == "eval" and step in {None, row["step"]}:
            found = row
    return {name: value for name, value in found.items() if name not in NOT_METRICS}


def _read_lines(path: Path, num_rows: int | None) -> Iterator[tuple[bytes, LogRow]]:
    """Yield each raw line with its parsed row; see `read_log`."""
    number = 0
    with storage_errors(path, "read"):
        if not path.exists():
            return
        with path.open("rb") as stream:
            for number, line in enumerate(islice(stream, num_rows), 1):
                try:
                    if not line.endswith(b"\n"):
                        raise ValueError("it was altered or cut short")
                    row = verify_row(line[:-1])
                    if not isinstance(row.get("event"), str) or type(row.get("step")) is not int:
                        raise ValueError("it needs an event and a step")
                except ValueError as error:
                    # A complete row that only lacks its newline was altered.
                    is_cut_short = not line.endswith(b"\n") and not is_intact_row(line[:-1])
                    if num_rows is None and is_cut_short:
                        return
                    raise DamagedFileError(
                        f"{path}:{number:,} isn't a row of a run's log: {error}; restore it, or"
                        f" move it away to continue without it"
                    ) from None
                yield line, row
    if num_rows is not None and number < num_rows:
        raise DamagedFileError(
            f"{path} has {pluralize(number, 'row')} and was saved with {num_rows:,}; restore"
            " it, or move it away to continue without it"
        )
