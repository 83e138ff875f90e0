"""Pre-train a BERT on shards, or measure what that would take."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from bertkit.base.errors import InputError, ResumeError, pluralize
from bertkit.base.progress import announce
from bertkit.base.settings import validate
from bertkit.base.transfers import uploads_output
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.data.shards import ShardSet
from bertkit.models.bert.config import BertConfig
from bertkit.models.open_model import OpenModel
from bertkit.recipes.pretrain.job import (
    PretrainingJob,
    find_objective,
    find_trained_length,
    load_source,
    open_source,
)
from bertkit.recipes.pretrain.new_model import build_config, build_new_model, check_config
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.reports.notebook import show_metrics
from bertkit.tasks.objectives.settings import ObjectiveName
from bertkit.tasks.objectives.table import OBJECTIVES
from bertkit.tokenization.folder import read_max_length
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.budget import (
    StepPace,
    count_steps,
    find_seconds,
    measure_pace,
    seconds_of_run,
)
from bertkit.training.job import Machine
from bertkit.training.lifecycle import Recipe, train
from bertkit.training.log import read_evaluation
from bertkit.training.record import RunRecord, RunState
from bertkit.training.run import Run
from bertkit.training.settings import BUDGET_FIELDS


@dataclass(frozen=True)
class PretrainResult:
    """The result of pre-training: the last checkpoint and its held-out metrics."""

    checkpoint: Path
    num_steps: int
    num_tokens: int  # without padding
    elapsed_seconds: float  # time spent training, over all its parts
    metrics: dict[str, float]

    @property
    def objective(self) -> ObjectiveName:
        """The objective: with --model it may be the model's."""
        record = Run.of(self.checkpoint).read_record()
        assert record is not None, "the run has a checkpoint"
        name: ObjectiveName = record.settings["objective"]
        return name

    def _repr_html_(self) -> str:
        """Show the metrics in a notebook."""
        return show_metrics(f"{self.checkpoint}: {self.num_tokens:,} tokens", self.metrics)


@dataclass(frozen=True)
class DryRun:
    """The size, time and pace of a run that isn't started."""

    num_parameters: int
    num_steps: int
    seconds: float  # of the whole run, with its evaluations
    pace: StepPace  # of the steps with examples of max_length
    long_pace: StepPace | None  # of those of long_length
    share_of_peak: float | None  # None if the step is faster than the machine's measured peak
    device: str
    precision: str


class Pretraining(Recipe[PretrainingJob, PretrainResult]):
    """Training on shards, from random weights or those of a checkpoint."""

    settings: PretrainSettings
    config: BertConfig
    model_max_length: int | None = None  # what the source or the run says; None if unknown
    source: OpenModel | None = None  # None if weights are random, or the run resumes

    def __init__(self, data: Path, settings: PretrainSettings) -> None:
        self.data, self.settings, self.inputs = data, settings, [data]

    @cached_property
    def shards(self) -> ShardSet:
        """The training and held-out text as token ids."""
        return ShardSet.open(self.data)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that made the shards."""
        return self.shards.load_tokenizer()

    def open_data(self, run: Run | None = None) -> None:
        """Set `config`, and `source` and `model_max_length` if the run starts from a model.

        A run that has a checkpoint is its own source: its record has the config.
        """
        tokenizer, settings = self.tokenizer, self.settings
        if not self.shards.train:
            raise InputError(f"{self.data} has no training text; prepare a larger corpus")
        if settings.model is None:
            self.config = build_config(settings, tokenizer)
        elif (
            run is not None and (record := run.read_record()) and (last := run.newest_checkpoint())
        ):
            self.config = BertConfig.from_dict(record.model, run.folder)
            self.model_max_length = read_max_length(last)
            self._take_objective(record.settings["objective"])
        else:
            self.source = open_source(settings.model, settings, tokenizer)
            self._take_objective(find_objective(self.source))
            self.config = check_config(
                self.source.config, self.settings, tokenizer, self.source.folder
            )
            self.model_max_length = self.source.model_max_length

    def _take_objective(self, name: ObjectiveName) -> None:
        """Train as the model was trained before, unless the settings say how.

        A `SettingsError` says that other settings contradict it, such as the mask rate.
        """
        if self.settings.continues_objective:
            values = {**self.settings.model_dump(exclude_unset=True), "objective": name}
            message = f"{self.settings.model} was trained with the objective {name}"
            self.settings = validate(PretrainSettings, values, message)

    def describe(self, run: Run) -> RunRecord:
        """Return settings, data, config and source, which `open_data` finds."""
        self.open_data(run)
        return RunRecord(
            settings=self.settings.model_dump(mode="json"),
            data_fingerprint=self.shards.fingerprint,
            model=self.config.to_dict(),
            source={} if self.source is None else self.source.identify(),
        )

    def find_hidden_size(self) -> int:
        """Return that of the config, which `open_data` finds."""
        return self.config.hidden_size

    def open(self, checkpoint: Path | None, machine: Machine) -> PretrainingJob:
        """Build the model with the weights of the checkpoint, or the initial ones."""
        if checkpoint is not None:
            model = OBJECTIVES[self.settings.objective].model_kind.from_pretrained(checkpoint)
        elif self.source is None:
            model = build_new_model(self.config, self.settings)
        else:
            torch.manual_seed(self.settings.seed)
            model = load_source(self.source, self.settings, self.shards.token_counts)
        length = find_trained_length(self.settings, self.model_max_length, self.config)
        job = PretrainingJob(
            self.settings, model, machine, self.shards, self.tokenizer, trained_length=length
        )
        if checkpoint is None:
            job.check_pairs()
        return job

    def decide_steps(self, job: PretrainingJob, before: RunRecord | None, wanted: RunRecord) -> int:
        """Return the number of steps: a resumed run has as many as before, or more."""
        settings = self.settings
        if before is not None and before.has_same_budget(wanted):
            return before.num_steps
        planned = 0 if before is None else before.planned_steps
        keeps_minutes = before is not None and self._check_minutes(before)
        if settings.steps is None and settings.tokens is None:
            announce("measuring a few steps to convert the minutes to steps")
        phases, shares = zip(*job.phases, strict=True)
        counts = [count_steps(phase) for phase in phases]
        num_steps = mix_steps(shares, counts)
        if num_steps < planned and not keeps_minutes:
            raise ResumeError(
                f"the run has {pluralize(planned, 'step')}, and the new budget is"
                f" {num_steps:,}; a run's budget can only grow"
            )
        return num_steps

    def _check_minutes(self, before: RunRecord) -> bool:
        """Return whether both budgets are in minutes; `ResumeError` if the new one has fewer.

        The steps that fit in them may be fewer in a larger one, if the machine is busy.
        """
        names = {name: before.settings.get(name) for name in BUDGET_FIELDS}
        old_settings = self.settings.model_copy(update=names)
        old, new = (
            find_seconds(each, self.default_minutes) for each in (old_settings, self.settings)
        )
        if old is None or new is None:
            return False
        if new < old:
            raise ResumeError(
                f"the run has --minutes {old / 60:g}, and the new budget is {new / 60:g};"
                " a run's budget can only grow"
            )
        return True

    def finish(self, job: PretrainingJob, run: Run, state: RunState) -> PretrainResult:
        """Return the last checkpoint with the metrics of its evaluation."""
        return PretrainResult(
            checkpoint=checkpoint_path(run.folder, state.step),
            num_steps=state.step,
            num_tokens=state.tokens,
            elapsed_seconds=state.elapsed_seconds,
            metrics=read_evaluation(run.log_path) or job.evaluate(),
        )


def mix_steps(shares: Sequence[float], counts: Sequence[int]) -> int:
    """Return how many steps fit in the budget, if `counts[n]` of phase n alone would."""
    return max(
        1, round(1 / sum(share / count for share, count in zip(shares, counts, strict=True)))
    )


@uploads_output()
def pretrain(data: Path, output: Path, settings: PretrainSettings) -> PretrainResult:
    """Pre-train on the shards that `prepare` wrote, or resume the run in `output`, as `train`."""
    return train(Pretraining(data, settings), output)


def dry_run(data: Path, settings: PretrainSettings) -> DryRun:
    """Measure a few steps and an evaluation, and write nothing."""
    recipe = Pretraining(data, settings)
    recipe.open_data()
    machine = Machine.choose(settings, recipe.find_hidden_size)
    job = recipe.open(None, machine)
    phases, shares = zip(*job.phases, strict=True)
    paces = [measure_pace(phase) for phase in phases]
    counts = [count_steps(phase, pace) for phase, pace in zip(phases, paces, strict=True)]
    num_steps, pace = mix_steps(shares, counts), paces[0]
    return DryRun(
        num_parameters=sum(parameter.numel() for parameter in job.model.parameters()),
        num_steps=num_steps,
        seconds=sum(
            share * seconds_of_run(pace, settings, num_steps)
            for share, pace in zip(shares, paces, strict=True)
        ),
        pace=pace,
        long_pace=paces[1] if paces[1:] else None,
        share_of_peak=machine.share_of_peak(pace.operations_per_step / pace.step_seconds),
        device=str(machine.device),
        precision=machine.precision,
    )
