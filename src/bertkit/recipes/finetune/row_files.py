"""The values of each held-out row after each evaluation, in files of the run's folder.

The verdict is taken from them at the end, also of a run that was interrupted: a resumed run repeats
the evaluations since its checkpoint, and writes the same bytes.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.files import make_folder
from bertkit.checkpoints.run_folder import SavedNumber
from bertkit.tasks.ranking import RowValues
from bertkit.training.log import read_log
from bertkit.training.run import Run

EVALUATIONS = "evaluations"  # in the folder of a run


class SavedRows(ChecksummedModel):
    """The row values of an evaluation, as in `RowValues`."""

    description: ClassVar[str] = "the values of held-out rows"

    format_version: Literal[1] = 1
    values: list[SavedNumber]
    truth: list[SavedNumber] | None
    start: list[SavedNumber] | None


@dataclass
class RowFiles:
    """The files of a run. A task that isn't compared with its start has none."""

    folder: Path | None = None  # of the run
    latest: RowValues | None = None  # of the last evaluation

    def keep(self, step: int) -> None:
        """Write the values of the last evaluation, made after so many steps."""
        if self.latest is not None and self.folder is not None:
            values = {
                name: None if each is None else each.tolist()
                for name, each in vars(self.latest).items()
            }
            make_folder(self.folder / EVALUATIONS)
            SavedRows(**values).save(self.folder / EVALUATIONS / f"{step}.json")


def read_rows(run: Run) -> dict[int, RowValues]:
    """Read the values of all evaluations in a run's log, by their steps."""
    found = {}
    for row in read_log(run.log_path):
        if row["event"] == "eval":
            saved = SavedRows.load(run.folder / EVALUATIONS / f"{row['step']}.json")
            arrays = (
                None if each is None else np.array(each)
                for each in (saved.values, saved.truth, saved.start)
            )
            found[row["step"]] = RowValues(*arrays)  # type: ignore[arg-type]
    return found
