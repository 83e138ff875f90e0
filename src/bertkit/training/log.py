"""The run's log: one JSON object a line, and TensorBoard where it is installed.

Rows hold nothing that a resumed run would compute otherwise, but for the fields named in
`CLOCK_FIELDS`.
"""

import json
import os
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bertkit.base.errors import DamagedFileError, StorageError
from bertkit.base.files import write_file

CLOCK_FIELDS = ("tokens_per_second", "share_of_peak", "elapsed_seconds")


class RunLog:
    """Appends rows; what stands behind the step at which a run is taken up is cut off.

    Args:
        path: the JSONL file.
        step: rows of later steps are removed; they will be written again.
    """

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        kept = [row for row in read_log(path) if 0 < step >= row["step"]]
        write_file(path, "".join(json.dumps(row) + "\n" for row in kept).encode())
        self._stream = path.open("a", encoding="utf-8")
        self._tensorboard = _open_tensorboard(path.parent / "tensorboard", step)

    def write(self, event: str, step: int, **values: Any) -> None:
        """Add one row.

        Raises:
            StorageError: the disk refused.
        """
        try:
            self._stream.write(json.dumps({"event": event, "step": step, **values}) + "\n")
            self._stream.flush()
        except OSError as error:
            raise StorageError(f"{self.path} can't be written: {error.strerror}") from error
        if self._tensorboard is not None:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._tensorboard.add_scalar(f"{event}/{name}", value, step)

    def sync(self) -> None:
        """Make all rows durable; done before each checkpoint."""
        os.fsync(self._stream.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stream.close()
        if self._tensorboard is not None:
            self._tensorboard.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """The rows of a run's log, in order; empty where there is none.

    A last line that a crash cut short is not a row.

    Raises:
        DamagedFileError: another line isn't JSON.
    """
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    try:
        return [json.loads(line) for line in lines]
    except ValueError as error:
        raise DamagedFileError(f"{path} isn't a run's log: {error}") from None


def _open_tensorboard(folder: Path, step: int) -> Any:
    """A TensorBoard writer that hides what is behind `step`; None where it isn't installed."""
    if find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=step + 1)
