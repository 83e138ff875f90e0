"""The run's log: one JSON object a line, and TensorBoard where it is installed.

Rows hold nothing that a resumed run would compute otherwise, but for the fields named in
`CLOCK_FIELDS`, and end with a checksum of their own, so that an altered one is never read.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bertkit.base import storage
from bertkit.base.checksummed_json import add_row_checksum, is_intact_row, verify_row
from bertkit.base.errors import DamagedFileError, storage_errors
from bertkit.base.files import durable_file, write_all
from bertkit.base.progress import announce
from bertkit.base.wording import pluralize

CLOCK_FIELDS = ("tokens_per_second", "share_of_peak", "elapsed_seconds")


class RunLog:
    """Appends rows to those that a run is taken up with; what stands behind them is cut off.

    Args:
        path: the JSONL file; where it is gone, a new one begins.
        step: after which the run is taken up.
        num_rows: rows that were synced when the run was saved.

    Attributes:
        num_rows: rows that it holds.

    Raises:
        DamagedFileError: the old rows aren't all there as they were written.
        StorageError: writing failed.
    """

    def __init__(self, path: Path, step: int, num_rows: int) -> None:
        self.path, self.num_rows = path, 0
        if num_rows and not path.exists():
            announce(f"{path} is gone; a new log begins")
        with durable_file(path) as file:
            for line, _ in _read_lines(path, num_rows):
                file.write(line)
                self.num_rows += 1
        with storage_errors(path, "written"):
            self._descriptor = storage.open_end(path)
        self._folder = path.parent / "tensorboard"
        try:
            with storage_errors(self._folder, "written"):
                self._tensorboard = _open_tensorboard(self._folder, step)
        except BaseException:
            self._close()
            raise

    def write(self, event: str, step: int, **values: Any) -> None:
        """Add one row; a number that isn't finite is null there, for JSON has none."""
        values = {name: None if _is_not_finite(value) else value for name, value in values.items()}
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
        """Make all rows durable; done before each checkpoint."""
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
            with suppress(OSError):  # the log has it all, and an error of the block goes first
                self._tensorboard.close()

    def _close(self) -> None:
        with suppress(OSError):  # what matters was synced, and an error of the block goes first
            storage.close(self._descriptor)


def read_log(path: Path, num_rows: int | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a run's log, in order; none where there is no log.

    Args:
        path: the JSONL file.
        num_rows: rows that were synced when the run was saved. All of them must be there, and
            behind them a crash may have left anything, which isn't read. Without it, every line
            must be a row, but for a last one that was cut short.
    """
    for _, row in _read_lines(path, num_rows):
        yield row


def _read_lines(path: Path, num_rows: int | None) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Each line as it stands, and its row; as in `read_log`."""
    number = 0
    with storage_errors(path, "read"):
        if not path.exists():
            return
        with path.open("rb") as stream:
            for number, line in enumerate(islice(stream, num_rows), 1):
                try:
                    row = _parse_line(line)
                except ValueError as error:
                    if num_rows is None and _is_cut_short(line):
                        return
                    raise DamagedFileError(
                        f"{path}:{number:,} isn't a row of a run's log: {error}; restore it, or"
                        " move it away to go on without it"
                    ) from None
                yield line, row
    if num_rows is not None and number < num_rows:
        raise DamagedFileError(
            f"{path} has {pluralize(number, 'row')} and was saved with {num_rows:,}; restore"
            " it, or move it away to go on without it"
        )


def _parse_line(line: bytes) -> dict[str, Any]:
    """One line of the log."""
    if not line.endswith(b"\n"):
        raise ValueError("it was altered or cut short")
    row = verify_row(line[:-1])
    if not isinstance(row.get("event"), str) or type(row.get("step")) is not int:
        raise ValueError("it needs an event and a step")
    return row


def _is_cut_short(line: bytes) -> bool:
    """Whether a line misses its end, which wasn't altered to be something else."""
    return not line.endswith(b"\n") and not is_intact_row(line[:-1])


def _is_not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _open_tensorboard(folder: Path, step: int) -> Any:
    """A TensorBoard writer that hides what is behind `step`; None where it isn't installed."""
    if find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=step + 1)
