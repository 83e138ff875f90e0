"""Base class of pre-training studies: each arm is pre-trained, then evaluated by fine-tuning."""

import json
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from bertkit.base.errors import InputError
from bertkit.base.files import remove_folder
from bertkit.base.progress import announce
from bertkit.base.settings import validate
from bertkit.checkpoints.run_folder import checkpoint_path, list_checkpoints
from bertkit.data.shards import ShardSet
from bertkit.data.tables.records import open_records
from bertkit.recipes.pretrain.run import DryRun, dry_run, pretrain
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit_studies.probes.downstream import LabeledTask
from bertkit_studies.probes.frozen_bilstm import score_bilstm
from bertkit_studies.probes.masked_words import MaskedWords
from bertkit_studies.probes.pretrained_arms import SCALES, PretrainedArm, PretrainingScale
from bertkit_studies.probes.probes import (
    GAPS_PROBE,
    LABELED,
    LABELED_PROBE,
    MASKED_ACCURACY,
    MASKED_LOSS,
    PAIRS_PROBE,
    Probe,
)
from bertkit_studies.probes.text_tasks import KINDS, find_tasks, write_text_tasks
from bertkit_studies.settings import PretrainingSettings
from bertkit_studies.study import Cell, Decision, Figure, Measure, Study

PRETRAINED_FOLDER, TASKS_FOLDER = "pretrained", "tasks"
TOKENS, TASKS = "tokens of pre-training", "tasks"  # also keys of the decision's values
NUM_PARTS = 8  # parts into which a run is divided for learning curves
WHOLE = (NUM_PARTS,)
DOUBLING = (1, 2, 4, NUM_PARTS)
KEPT = 1_000  # more than any run writes, so that all checkpoints are kept
# Arms with equal values of these take the same time.
ALIKE = ("size", "objective", "mask_rate", "batch_size", "max_length", "dropout", "optimizer")
SECONDS_PER_EXAMPLE = 4e-3  # an estimate for fine-tuning on two cores
SECONDS_PER_FINE_TUNING = 4.0


class PretrainingStudy(Study[PretrainingSettings]):
    """Base of pre-training studies; a subclass defines its arms, probes and claims.

    Attributes:
        scales: scale by size setting.
        probes: fine-tuning tasks that are built from the shards.
        parts: the eighths of pre-training after which models are measured.
        measures_words: whether all arms have a masked-word head, so that its loss is compared.
        is_equal_time: whether all arms train for the time that the first needs for its tokens;
            otherwise all train on the same number of tokens.
    """

    scales: ClassVar[Mapping[str, PretrainingScale]] = SCALES
    probes: ClassVar[Sequence[Probe]] = (GAPS_PROBE, PAIRS_PROBE)
    parts: ClassVar[Sequence[int]] = WHOLE
    measures_words: ClassVar[bool] = True
    is_equal_time: ClassVar[bool] = False

    @property
    @abstractmethod
    def arms(self) -> Sequence[PretrainedArm]:
        """The arms to compare."""

    @property
    def scale(self) -> PretrainingScale:
        """The scale for the chosen size."""
        return self.scales[self.settings.size]

    @property
    def all_probes(self) -> list[Probe]:
        """The study's probes, and the user's labeled examples if there are any."""
        return [*self.probes, *([] if self.settings.labeled is None else [LABELED_PROBE])]

    @property
    def measures(self) -> Sequence[Measure]:
        """The measures: fine-tuning first, then masked words."""
        words = (MASKED_LOSS, MASKED_ACCURACY) if self.measures_words else ()
        probes = [self._spread_out(one.measure, one.is_course) for one in self.all_probes]
        return [*probes, *(self._spread_out(measure, True) for measure in words)]

    def identify_data(self) -> str:
        """Return the shards' fingerprint and checksums of the labeled examples, as JSON."""
        found: dict[str, Any] = {"shards": ShardSet.open(self.settings.data).fingerprint}
        if (labeled := self.settings.labeled) is not None:
            dev = self.settings.labeled_dev
            sources = [labeled, *([] if dev is None else [dev])]
            found["labeled"] = [open_records(source).identity for source in sources]
        return json.dumps(found, sort_keys=True)

    def decide(self) -> Decision:
        """Convert the budget to tokens and steps per arm; find the tasks that the text gives."""
        held_out = self._count_held_out()
        announce("measuring a few steps of each kind of model")
        plans = self._measure_arms()
        tokens = self._num_tokens
        if self.settings.minutes is not None:
            chosen = [plans[self.arms[0].name]] if self.is_equal_time else plans.values()
            tokens = min(_tokens_of(plan) for plan in chosen)
        steps = self._count_steps(plans, tokens)
        values: dict[str, int | float | str] = {
            TOKENS: tokens,
            TASKS: " ".join(name for name in held_out if name != LABELED),
            **{name_steps(name): number for name, number in steps.items()},
            **{f"held-out examples of {name}": number for name, number in held_out.items()},
        }
        seconds = {
            name: plan.seconds * steps[name] / plan.num_steps + self._guess_fine_tuning()
            for name, plan in plans.items()
        }
        shared = {arm.name: self._guess_fine_tuning() for arm in self.arms if arm.shares}
        return Decision(values, {**seconds, **shared})

    def run_cell(self, cell: Cell, folder: Path, decision: Decision) -> list[Figure]:
        """Pre-train, unless the arm shares another's model, and measure the checkpoints."""
        tasks, arm = self._list_tasks(folder, decision), self._find_arm(cell.arm)
        measures = {measure.name: measure for measure in self.measures}
        figures = []
        for part, checkpoint in self._pretrain(cell, folder, decision).items():
            place = folder / cell.place / f"part{part}"
            values = self._measure(cell, checkpoint, place, tasks, is_end=part == NUM_PARTS)
            at = float(decision.values[TOKENS]) * arm.token_share * part / NUM_PARTS
            figures += [
                Figure(name, value, None if measures[name].across is None else at)
                for name, value in values.items()
            ]
        return figures

    def _pretrain(self, cell: Cell, folder: Path, decision: Decision) -> dict[int, Path]:
        """Return the checkpoints to measure, by part; remove the others."""
        arm = self._find_arm(self._find_arm(cell.arm).pretrained)
        last = self._finish(arm, cell.seed, folder, decision)
        parts = self.parts if arm.starts_from is None else WHOLE
        run, steps = last.parents[1], int(decision.values[name_steps(arm.name)])
        found = {part: checkpoint_path(run, min(steps, part * _interval(steps))) for part in parts}
        for path in set(list_checkpoints(run)) - set(found.values()):
            remove_folder(path)
        return found

    def _finish(self, arm: PretrainedArm, seed: int, folder: Path, decision: Decision) -> Path:
        """Pre-train an arm's own model, after the one that it starts from; return the last step."""
        steps = int(decision.values[name_steps(arm.name)])
        run = folder / PRETRAINED_FOLDER / arm.name / f"seed{seed}"
        if not checkpoint_path(run, steps).exists():
            start = None
            if arm.starts_from is not None:
                start = self._finish(self._find_arm(arm.starts_from), seed, folder, decision)
            pretrain(self.settings.data, run, self.choose(arm, seed, steps, start))
        return checkpoint_path(run, steps)

    def choose(
        self,
        arm: PretrainedArm,
        seed: int,
        steps: int | None = None,
        start: Path | None = None,
    ) -> PretrainSettings:
        """Return the settings of an arm's pre-training.

        Args:
            arm: the arm; one that shares a model gets the settings of its owner.
            seed: the seed of the run.
            steps: the budget in steps; None for the study's budget.
            start: the model to start from; None for random weights.
        """
        owner = self._find_arm(arm.pretrained)
        # The figures of the papers are those of their recipe.
        values = {
            "recipe": "paper",
            **self.scale.pretraining,
            "seed": seed,
            "device": self.settings.device,
            **owner.changes,
            **self._choose_budget(steps),
        }
        if start is not None:
            values |= {"size": None, "model": str(start)}
        return validate(PretrainSettings, values, f"arm {owner.name}")

    def _choose_budget(self, steps: int | None) -> dict[str, Any]:
        """Return the settings for a number of steps, or None for the study's budget."""
        if steps is None:
            minutes = self.settings.minutes
            return {"tokens": self._num_tokens} if minutes is None else {"minutes": minutes}
        if len(self.parts) == 1:
            return {"steps": steps}
        return {"steps": steps, "checkpoint_every": _interval(steps), "keep": KEPT}

    def _count_steps(self, plans: Mapping[str, DryRun], tokens: int) -> dict[str, int]:
        """Return the steps of each arm that pre-trains its own model."""
        numbers = {
            name: tokens * self._find_arm(name).token_share / plan.pace.tokens_per_step
            for name, plan in plans.items()
        }
        if self.is_equal_time:
            first = self.arms[0].name
            seconds = numbers[first] * plans[first].pace.step_seconds
            numbers = {name: seconds / plan.pace.step_seconds for name, plan in plans.items()}
        return {name: max(NUM_PARTS, math.ceil(number)) for name, number in numbers.items()}

    def _measure_arms(self) -> dict[str, DryRun]:
        """Measure the cost of a step of each arm that pre-trains its own model."""
        measured: dict[tuple[Any, ...], DryRun] = {}
        plans = {}
        for arm in self.arms:
            if arm.shares is None:
                settings = self.choose(arm, 0)
                key = tuple(getattr(settings, name) for name in ALIKE)
                if key not in measured:
                    measured[key] = dry_run(self.settings.data, settings)
                plans[arm.name] = measured[key]
        return plans

    def _measure(
        self,
        cell: Cell,
        checkpoint: Path,
        place: Path,
        tasks: Mapping[str, LabeledTask],
        *,
        is_end: bool,
    ) -> dict[str, float]:
        """Return all measured values of a checkpoint, by measure."""
        arm, device = self._find_arm(cell.arm), self.settings.device
        found = self._words.measure(checkpoint, device) if self.measures_words else {}
        for probe in self.all_probes:
            if probe.task in tasks and (is_end or probe.is_course):
                name, changes = probe.measure.name, {**probe.fine_tuning, **arm.fine_tuning}
                settings = self.scale.fine_tuning.choose(cell.seed, device, changes)
                task, bilstm = tasks[probe.task], arm.bilstm or probe.bilstm
                if bilstm is None:
                    found[name] = task.score(checkpoint, place / name, settings)
                else:
                    found[name] = score_bilstm(task, checkpoint, bilstm, settings)
        return found

    def _spread_out(self, measure: Measure, is_course: bool) -> Measure:
        """Return a measure with `across` set if it is measured at several parts of pre-training."""
        across = TOKENS if is_course and len(self.parts) > 1 else None
        return replace(measure, across=across)

    def _find_arm(self, name: str) -> PretrainedArm:
        [arm] = [arm for arm in self.arms if arm.name == name]
        return arm

    @cached_property
    def _words(self) -> MaskedWords:
        """Blanks that are the same for all arms, however they were masked while they learned."""
        values = {**self.scale.pretraining, "objective": "mlm", "device": self.settings.device}
        settings = validate(PretrainSettings, values, "blanks")
        return MaskedWords(ShardSet.open(self.settings.data), settings)

    def _count_held_out(self) -> dict[str, int]:
        """Count the held-out examples of each task that the data give."""
        shards = ShardSet.open(self.settings.data)
        found = find_tasks([probe.task for probe in self.probes], shards, self._counts)
        if self._labeled is not None:
            settings = self.scale.fine_tuning.choose(0, self.settings.device, {})
            found[LABELED] = len(self._labeled.open(settings).dev.examples)
        if not found and not self.measures_words:
            raise InputError(
                f"the text gives no task to measure the arms of {self.name} by; prepare more"
                " documents and hold out more of them (bertkit prepare --held-out), or bring labels"
                " (--labeled)"
            )
        return found

    def _list_tasks(self, folder: Path, decision: Decision) -> dict[str, LabeledTask]:
        shards = ShardSet.open(self.settings.data)
        names = str(decision.values[TASKS]).split()
        files = write_text_tasks(names, shards, folder / TASKS_FOLDER, self._counts)
        tasks = {name: LabeledTask(KINDS[name], *paths) for name, paths in files.items()}
        if self._labeled is not None:
            tasks[LABELED] = self._labeled
        return tasks

    @property
    def _labeled(self) -> LabeledTask | None:
        """The labeled examples of the settings."""
        labeled, dev = self.settings.labeled, self.settings.labeled_dev
        return None if labeled is None else LabeledTask(self.settings.task, labeled, dev)

    @property
    def _num_tokens(self) -> int:
        """Tokens of a cell's pre-training, unless the budget is in minutes."""
        return self.settings.tokens or self.scale.tokens

    @property
    def _counts(self) -> dict[str, int]:
        return {"train": self.scale.fine_tuning.num_train, "dev": self.scale.fine_tuning.num_dev}

    def _guess_fine_tuning(self) -> float:
        """Estimate the seconds of fine-tuning in a cell."""
        how = self.scale.fine_tuning
        each = SECONDS_PER_FINE_TUNING + SECONDS_PER_EXAMPLE * how.num_train * how.epochs
        times = [len(self.parts) if probe.is_course else 1 for probe in self.all_probes]
        return sum(times) * each


def _interval(steps: int) -> int:
    """Return the steps of one part of a run."""
    return -(-steps // NUM_PARTS)


def _tokens_of(plan: DryRun) -> int:
    return int(plan.num_steps * plan.pace.tokens_per_step)


def name_steps(arm: str) -> str:
    """Return the key of an arm's pre-training steps in the decision's values."""
    return f"steps of {arm}"
