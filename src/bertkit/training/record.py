"""What a run records: its settings and progress, and the checks before it is resumed."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.earlier_settings import update_settings
from bertkit.base.errors import ResumeError
from bertkit.base.progress import announce
from bertkit.base.settings import list_differences, list_flag_differences
from bertkit.checkpoints.formats import is_same_model
from bertkit.training.settings import (
    BUDGET_FIELDS,
    MAY_CHANGE,
    OptimizationSettings,
    TrainingPrecision,
)

RECORD_FILE = "settings.json"
STATE_FILE = "run_state.json"
LOG_FILE = "log.jsonl"
AUTO = "auto"
AnySettings = TypeVar("AnySettings", bound=OptimizationSettings)


class RunState(BaseModel):
    """The progress of a run. With weights and optimizer, this is all that resuming needs."""

    model_config = ConfigDict(frozen=True, extra="ignore")  # older ones have other fields

    step: int = 0
    tokens: int = 0  # without padding
    evaluated_step: int | None = None  # the step of the last evaluation
    best_loss: float | None = None  # the lowest held-out loss
    num_skipped: int = 0  # steps in a row whose gradient was not finite
    elapsed_seconds: float = 0.0
    num_log_rows: int = 0  # synced with this checkpoint
    best_metric: float | None = None  # of the watched metric
    best_step: int | None = None
    best_step_loss: float | None = None
    num_not_better: int = 0  # evaluations in a row
    has_ended_early: bool = False
    deadline_seconds: float | None = None  # of `elapsed_seconds`; what follows is the plan for it
    reserved_seconds: float = 0.0  # of these, for work after the last step
    num_steps: int | None = None  # as planned last
    planned_step: int = 0  # at which it was planned
    planned_seconds: float = 0.0  # `elapsed_seconds` then, and evaluations and checkpoints since
    evaluation_seconds: float = 0.0  # of the last evaluation
    phase_step: int | None = None  # the first step of the last phase, if the job has several

    def plan(self, num_steps: int) -> int:
        """Return the number of steps of the run; its record says `num_steps`."""
        return num_steps if self.num_steps is None else self.num_steps

    def spend(self, seconds: float, *, is_evaluation: bool = False) -> Self:
        """Return the state after an evaluation or a checkpoint, which don't count as steps."""
        changes = {"elapsed_seconds": self.elapsed_seconds + seconds}
        if self.deadline_seconds is not None:
            changes["planned_seconds"] = self.planned_seconds + seconds
            if is_evaluation:
                changes["evaluation_seconds"] = seconds
        return self.model_copy(update=changes)

    def plan_again(self, num_steps: int, last_share: float) -> Self:
        """Return the state with a new number of steps, and the phase that has its last ones.

        A phase that has begun stays.
        """
        phase_step = self.phase_step
        if last_share and (phase_step is None or self.step < phase_step):
            phase_step = max(self.step, round((1.0 - last_share) * num_steps))
        return self.model_copy(
            update={
                "num_steps": num_steps,
                "planned_step": self.step,
                "planned_seconds": self.elapsed_seconds,
                "phase_step": phase_step,
            }
        )

    @property
    def is_plan_due(self) -> bool:
        """Whether to plan again: half-way to the planned end, and where the last phase begins."""
        assert self.num_steps is not None, "the run has a plan"
        half = -(-(self.num_steps - self.planned_step) // 2)
        is_half_way = self.step - self.planned_step >= half
        return self.step < self.num_steps and (is_half_way or self.step == self.phase_step)

    @property
    def model_step(self) -> int:
        """The step whose checkpoint becomes the model: the best, or the last."""
        return self.step if self.best_step is None else self.best_step

    def is_done(self, num_steps: int) -> bool:
        """Whether a run of so many steps is complete and was evaluated at its end."""
        return self.has_ended_early or self.evaluated_step == self.plan(num_steps)


class RunRecord(ChecksummedModel):
    """The settings, data and model that a run was started with.

    Attributes:
        source: the checkpoint that its first weights come from; empty where they were drawn.
        plans: of a run with a budget in minutes, the numbers of steps as they were planned, by the
            step at which they were.
        evaluation_plans: the steps whose plan was made after their evaluation.
        seconds_after: of its budget, the time reserved for work after the last step.
    """

    description: ClassVar[str] = "a run's record"

    settings: dict[str, Any]
    data_fingerprint: str
    model: dict[str, Any]
    num_steps: int = 0
    versions: dict[str, str] = Field(default_factory=dict)
    source: dict[str, Any] = Field(default_factory=dict)
    plans: dict[int, int] = Field(default_factory=dict)
    evaluation_plans: list[int] = Field(default_factory=list)
    seconds_after: float = 0.0

    _update_settings = field_validator("settings")(update_settings)

    @property
    def planned_steps(self) -> int:
        """The number of steps as it was planned last."""
        return self.plans[max(self.plans)] if self.plans else self.num_steps

    @property
    def precision(self) -> str:
        """The precision of the run; auto where none was asked for and none was recorded."""
        asked = str(self.settings.get("precision", AUTO))
        return self.versions.get("precision", AUTO) if asked == AUTO else asked

    def check_resume(self, new: Self, found: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Raise `ResumeError` if settings, data or the source of the weights differ from the run's.

        With precision auto, a run keeps its own, as `keep_precision` says. `found` has the model
        and the source, if they became known after the record was made.
        """
        facts = {"model": new.model, "source": new.source} | dict(found)
        model, source = facts["model"], facts["source"]
        fixed = sorted((self.settings.keys() | new.settings.keys()) - MAY_CHANGE - {"precision"})
        differences = list_flag_differences(self.settings, new.settings, fixed)
        if new.settings.get("precision", AUTO) != AUTO:
            differences += list_flag_differences(
                {"precision": self.precision}, new.settings, ["precision"]
            )
        if model:
            differences += [f"model's {change}" for change in list_differences(self.model, model)]
        if self.data_fingerprint != new.data_fingerprint:
            differences.append("data: different data")
        if source and self.source != source:
            differences.append("source: different files or commit")
        if differences:
            raise ResumeError(
                f"this run was started with other settings ({'; '.join(differences)});"
                " use the same, or another --output"
            )

    def recognize_source(self, old: Self | None) -> Self:
        """Return the record with the old name of its source if both paths lead to the same files.

        So the folder of the model to start from may be moved, or spelled otherwise.
        """
        if (named := self.settings.get("model")) is None:
            return self
        # A shell adds a / to a folder's name or doesn't.
        now = named if "://" in named else str(Path(named))
        if old is not None and old.source:
            before = old.settings.get("model")
            if now != before and is_same_model(now, old.source["sha256"]):
                now = str(before)
        if now == named:
            return self
        return self.model_copy(update={"settings": {**self.settings, "model": now}})

    def list_kept(self, new: Self, versions: Mapping[str, str]) -> dict[str, Any]:
        """Return what a resumed run keeps: its first versions, its source and number of steps."""
        if differences := ", ".join(list_differences(self.versions, dict(versions))):
            announce(f"the resumed run won't be bit for bit that of one machine: {differences}")
        kept: dict[str, Any] = {
            "versions": self.versions,
            "source": self.source,
            "num_steps": self.num_steps,
        }
        if self.has_same_budget(new):
            names = ("plans", "evaluation_plans", "seconds_after")
            kept |= {name: getattr(self, name) for name in names}
        return kept

    def has_same_budget(self, new: Self) -> bool:
        """Whether both have the same budget, so that the number of steps is the same."""
        before, after = (
            json.dumps({name: record.settings.get(name) for name in sorted(BUDGET_FIELDS)})
            for record in (self, new)
        )
        return before == after


def read_record(folder: Path) -> RunRecord | None:
    """Read the record in a run's folder; None if there is none."""
    path = folder / RECORD_FILE
    return RunRecord.load(path) if path.exists() else None


def keep_precision(settings: AnySettings, record: RunRecord | None) -> AnySettings:
    """Return the settings with the precision of the run to resume, unless one is asked for."""
    is_asked = settings.precision != AUTO
    if is_asked or record is None or record.precision not in get_args(TrainingPrecision):
        return settings
    return settings.model_copy(update={"precision": record.precision})
