"""The files in which a fine-tuning keeps its results: `metrics.json`, and a run's estimate."""

from pathlib import Path
from typing import ClassVar, Self

from pydantic import JsonValue, field_validator

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.checkpoints.run_folder import FinishedRecord, SavedNumber
from bertkit.recipes.finetune.data import SetCounts
from bertkit.recipes.finetune.verdict import Verdict
from bertkit.reports.text import format_metric
from bertkit.tasks.metrics.calibration import CalibrationError

ESTIMATE_FILE = "cross_validated.json"  # in the folder of a run


class CrossValidated(ChecksummedModel):
    """Metrics over all rows, each predicted by a head that was solved without its fold."""

    description: ClassVar[str] = "the cross-validated estimate of a run"

    num_examples: int
    num_alone: int = 0  # others, whose label no other row has: no head could know it
    metrics: dict[str, SavedNumber]
    intervals: dict[str, tuple[SavedNumber, SavedNumber]]  # 95 %

    @classmethod
    def read(cls, run: Path) -> Self | None:
        """Read the estimate of a run; None if there is none."""
        path = run / ESTIMATE_FILE
        return cls.load(path) if path.exists() else None

    def describe(self) -> str:
        """Describe the estimate in a line."""
        shown = ", ".join(
            f"{name} {format_metric(name, value, self.intervals.get(name))}"
            for name, value in self.metrics.items()
        )
        alone = f" but {self.num_alone:,} whose label no other has" if self.num_alone else ""
        rows = f"all {self.num_examples + self.num_alone:,} rows{alone}"
        return f"By cross-validation on {rows}, of a head solved on the frozen encoder: {shown}"


class SavedFineTuning(FinishedRecord):
    """The content of `metrics.json`."""

    task: str
    metric: str  # the one that selects the best step
    metrics: dict[str, SavedNumber]
    intervals: dict[str, tuple[SavedNumber, SavedNumber]]  # 95 %
    calibration: CalibrationError | None = None  # None if answers have no confidence
    cross_validated: CrossValidated | None = None  # None if enough rows are held out
    baseline: dict[str, SavedNumber]  # of always predicting the most frequent label
    verdict: Verdict | None = None  # None if the task isn't compared with its start
    best_epoch: float  # may be fractional
    steps_per_epoch: int = 0  # of an older version, which didn't write it
    train: SetCounts
    dev: SetCounts

    @field_validator("calibration", mode="before")
    @classmethod
    def _drop_older_key(cls, value: JsonValue) -> JsonValue:
        """Drop the error of a calibrated model, which older versions estimated."""
        if isinstance(value, dict):
            return {name: number for name, number in value.items() if name != "if_calibrated"}
        return value

    @property
    def verdict_lines(self) -> list[str]:
        """The verdict, as the last line, and advice before it; none if the task has none."""
        verdict = self.verdict
        return [] if verdict is None else [*verdict.list_advice(), verdict.describe()]

    @property
    def num_epoch_steps(self) -> int:
        """Number of steps of an epoch; without the best epoch's step to tell it, 1."""
        if self.steps_per_epoch:
            return self.steps_per_epoch
        return max(1, round(self.best_step / self.best_epoch)) if self.best_step else 1
