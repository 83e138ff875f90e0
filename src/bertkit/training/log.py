"""The run's log: one JSON object a line, and TensorBoard where it is installed.

Rows hold nothing that a resumed run would compute otherwise, but for the fields named in
`CLOCK_FIELDS`, and end with a checksum of their own, so that an altered one is never read.
"""

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bertkit.base import storage
from bertkit.base.errors import DamagedFileError, storage_errors
from bertkit.base.files import write_all, write_file
from bertkit.base.sealed import is_whole_row, open_row, seal_row

CLOCK_FIELDS = ("tokens_per_second", "share_of_peak", "elapsed_seconds")


class RunLog:
    """Appends rows; what stands behind the step at which a run is taken up is cut off.

    Args:
        path: the JSONL file.
        step: rows of later steps are removed; they will be written again.
        is_evaluated: False removes the evaluation after `step` too, which is still to be made.

    Raises:
        DamagedFileError: the old rows can't be read.
        StorageError: the disk refused.
    """

    def __init__(self, path: Path, step: int, *, is_evaluated: bool = True) -> None:
        self.path = path
        steps = {"eval": step if is_evaluated else step - 1}
        rows = read_log(path, synced_step=step)
        kept = [row for row in rows if step > 0 and row["step"] <= steps.get(row["event"], step)]
        write_file(path, "".join(seal_row(row) + "\n" for row in kept).encode())
        with storage_errors(path, "written"):
            self._descriptor = storage.open_end(path)
        self._tensorboard = _open_tensorboard(path.parent / "tensorboard", step)

    def write(self, event: str, step: int, **values: Any) -> None:
        """Add one row.

        Raises:
            StorageError: the disk refused.
        """
        row = seal_row({"event": event, "step": step, **values})
        with storage_errors(self.path, "written"):
            write_all(self._descriptor, memoryview(f"{row}\n".encode()))
        if self._tensorboard is not None:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._tensorboard.add_scalar(f"{event}/{name}", value, step)

    def sync(self) -> None:
        """Make all rows durable; done before each checkpoint.

        Raises:
            StorageError: the disk refused.
        """
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
        with suppress(OSError):  # what matters was synced, and an error of the block goes first
            storage.close(self._descriptor)
        if self._tensorboard is not None:
            self._tensorboard.close()


def read_log(path: Path, *, synced_step: int | None = None) -> list[dict[str, Any]]:
    """The rows of a run's log, in order; empty where there is none.

    A last line that a crash cut short is not a row.

    Args:
        path: the JSONL file.
        synced_step: the log was synced after this step. Behind its rows a crash may have left
            anything, which is passed over; without it, every line has to be a row.

    Raises:
        DamagedFileError: another line isn't a row.
        StorageError: it can't be read.
    """
    with storage_errors(path, "read"):
        if not path.exists():
            return []
        content = path.read_bytes()
    lines = content.split(b"\n")
    if not is_whole_row(lines[-1][:-1]):  # else its line's end was altered
        lines.pop()
    rows: list[dict[str, Any]] = []
    newest_step = 0
    for number, line in enumerate(lines, 1):
        try:
            row = _parse_row(line)
        except ValueError as error:
            if synced_step is not None and newest_step >= synced_step:
                break
            raise DamagedFileError(
                f"{path}:{number:,} isn't a row of a run's log: {error}; move it away"
            ) from None
        rows.append(row)
        newest_step = row["step"]
    return rows


def _parse_row(line: bytes) -> dict[str, Any]:
    """One line of the log.

    Raises:
        ValueError: it was altered, or has no event and step.
    """
    row = open_row(line)
    if not isinstance(row.get("event"), str) or type(row.get("step")) is not int:
        raise ValueError("it needs an event and a step")
    return row


def _open_tensorboard(folder: Path, step: int) -> Any:
    """A TensorBoard writer that hides what is behind `step`; None where it isn't installed."""
    if find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=step + 1)
