"""What two runs that do the same share of their logs."""

from pathlib import Path
from typing import Any

from bertkit.training.log import CLOCK_FIELDS, read_log


def rows_without_clock(log: Path) -> list[dict[str, Any]]:
    """A run's log, without what no two runs share."""
    return [
        {name: value for name, value in row.items() if name not in CLOCK_FIELDS}
        for row in read_log(log)
    ]
