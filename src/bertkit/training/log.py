"""The run's log: one JSON object a line, and TensorBoard where it is installed.

Rows hold nothing that a resumed run would compute otherwise, but for the fields named in
`CLOCK_FIELDS`.
"""

import json
import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bertkit.base.errors import DamagedFileError
from bertkit.base.files import storage_errors, write_file

CLOCK_FIELDS = ("tokens_per_second", "share_of_peak", "elapsed_seconds")


class RunLog:
    """Appends rows; what stands behind the step at which a run is taken up is cut off.

    Args:
        path: the JSONL file.
        step: rows of later steps are removed; they will be written again.

    Raises:
        DamagedFileError: the old rows can't be read.
        StorageError: the disk refused.
    """

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        kept = [row for row in read_log(path) if 0 < step >= row["step"]]
        write_file(path, "".join(json.dumps(row) + "\n" for row in kept).encode())
        with storage_errors(path, "written"):
            self._stream = path.open("a", encoding="utf-8")
        self._tensorboard = _open_tensorboard(path.parent / "tensorboard", step)

    def write(self, event: str, step: int, **values: Any) -> None:
        """Add one row.

        Raises:
            StorageError: the disk refused.
        """
        row = json.dumps({"event": event, "step": step, **values}, allow_nan=False)
        with storage_errors(self.path, "written"):
            self._stream.write(row + "\n")
            self._stream.flush()
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
            os.fsync(self._stream.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with suppress(OSError):  # a row that the disk refused is still in the buffer, and was told
            self._stream.close()
        if self._tensorboard is not None:
            self._tensorboard.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """The rows of a run's log, in order; empty where there is none.

    A last line that a crash cut short is not a row.

    Raises:
        DamagedFileError: another line isn't a row.
        StorageError: it can't be read.
    """
    with storage_errors(path, "read"):
        if not path.exists():
            return []
        content = path.read_bytes()
    try:
        rows = [json.loads(line) for line in content.split(b"\n")[:-1]]
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} isn't a run's log: {error}; move it away") from None
    for number, row in enumerate(rows, 1):
        is_row = isinstance(row, dict) and isinstance(row.get("event"), str)
        if not is_row or type(row.get("step")) is not int:
            raise DamagedFileError(
                f"{path}:{number:,} isn't a row of a run's log, with event and step; move it away"
            )
    return rows


def _open_tensorboard(folder: Path, step: int) -> Any:
    """A TensorBoard writer that hides what is behind `step`; None where it isn't installed."""
    if find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=step + 1)
