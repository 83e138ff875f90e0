"""Several runs that differ only in their seed; the best by the held-out metric becomes the model.

Each run has its own folder in `seeds/`, like a single run, but the data is read once and, without
a held-out file, split once. Finished runs aren't repeated.
"""

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.errors import NonFiniteError, pluralize
from bertkit.base.files import remove_folder
from bertkit.base.progress import announce, estimate_seconds_left
from bertkit.base.settings import validate
from bertkit.base.signals import delay_stop_signals
from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.checkpoints.huggingface import WEIGHTS_FILE
from bertkit.checkpoints.run_folder import METRICS_FILE, RUN_FOLDER, SavedNumber
from bertkit.models.open_model import OpenModel
from bertkit.recipes.finetune.comparison import SeedComparison
from bertkit.recipes.finetune.data import FineTuningData
from bertkit.recipes.finetune.evaluation import evaluate_model
from bertkit.recipes.finetune.mining import NEGATIVES_FILE
from bertkit.recipes.finetune.pretrained import identify, open_pretrained
from bertkit.recipes.finetune.result import (
    ADAPTER_FOLDER,
    FineTuneResult,
    judge_held_out,
    write_model,
)
from bertkit.recipes.finetune.run import (
    SEEDS_FOLDER,
    FineTuning,
    Sources,
    build_job,
    check_kind,
    finetune,
    list_paths,
    open_data,
    prepare_data,
)
from bertkit.recipes.finetune.saved import SavedFineTuning
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.saved import SavedTask
from bertkit.tasks.settings import TaskSettings
from bertkit.training.job import Machine
from bertkit.training.lifecycle import (
    drop_checkpoints,
    drop_left_checkpoints,
    keep_run,
    open_run,
    replace_run,
)
from bertkit.training.ranks import refuse_ranks
from bertkit.training.record import keep_precision
from bertkit.training.run import Run

SEEDS_FILE = "seeds.json"
STOPPED = "stopped; the same command resumes with the runs that aren't finished"


class SavedSeeds(ChecksummedModel):
    """The content of `seeds.json`, which is written when all runs are done."""

    description: ClassVar[str] = "the result of several seeds"

    format_version: Literal[1] = 1
    metric: str
    values: dict[int, SavedNumber]  # by seed; null if a run has no value
    best: int  # the seed of the run whose model was kept


@dataclass(frozen=True)
class SeedRuns:
    """The plan of several runs that differ only in their seed."""

    sources: Sources
    output: Path  # the folder of the best run's model
    task_settings: TaskSettings
    settings: FineTuneSettings
    num_seeds: int
    data: FineTuningData  # of all runs

    @property
    def seeds(self) -> range:
        """The seeds of the runs, counted from that of the settings."""
        return range(self.settings.seed, self.settings.seed + self.num_seeds)

    @property
    def folder(self) -> Path:
        """The folder of the runs."""
        return self.output / SEEDS_FOLDER

    def find_output(self, seed: int) -> Path:
        """Return the folder of one run."""
        return self.folder / f"seed{seed}"

    def choose(self, seed: int) -> FineTuneSettings:
        """Return the settings of one run; all runs share the held-out split of the first seed."""
        settings = self.settings
        split_seed = settings.seed if settings.split_seed is None else settings.split_seed
        given = settings.model_dump(exclude_unset=True)
        return validate(
            FineTuneSettings, {**given, "seed": seed, "split_seed": split_seed}, f"seed {seed}"
        )

    @property
    def recipe(self) -> FineTuning:
        """All runs as one, without the number of seeds, which may grow."""
        return FineTuning(self.sources, self.task_settings, self.settings, self.data)

    def run(self, seed: int) -> None:
        """Train with one seed; errors as in `finetune`."""
        output, chosen = self.find_output(seed), self.choose(seed)
        finetune(self.sources, output, self.task_settings, chosen, self.data)


def finetune_seeds(
    sources: Sources,
    output: Path,
    task_settings: TaskSettings,
    settings: FineTuneSettings,
    num_seeds: int,
) -> FineTuneResult:
    """Fine-tune with several seeds, or resume; keep the best model. Errors are as in `finetune`."""
    refuse_ranks("--seeds")
    data = open_data(sources, task_settings, settings)
    plan = SeedRuns(sources, output, task_settings, settings, num_seeds, data)
    plan.choose(plan.seeds[-1])  # an invalid seed is an error now, not after hours of training
    record = Run(plan.folder)
    check = partial(check_kind, kind=SEEDS_FOLDER)
    with open_run(
        record, output, inputs=list_paths(sources), check=check, describe_stop=lambda: STOPPED
    ):
        old = record.read_record()
        plan = replace(plan, settings=keep_precision(settings, old))
        wanted = plan.recipe.describe(record).recognize_source(old)
        is_replaced = old is not None and not keep_run(old, wanted, overwrite=settings.overwrite)
        if is_replaced:
            plan, old = replace(plan, settings=settings), None
            wanted = plan.recipe.describe(record)
        elif (finished := read_finished(plan)) is not None:
            return finished
        opened, has_mined = plan.recipe.parent, (record.folder / NEGATIVES_FILE).exists()
        start = record.folder if old is not None and has_mined else opened
        parent = prepare_data(data, opened, start, plan.settings)
        wanted = wanted.model_copy(update={"source": identify(parent)})
        if old is not None:
            old.check_resume(wanted)
        if is_replaced:  # only now, as data and model can be read
            replace_run(record, output)
            remove_folder(output / SEEDS_FILE)
        record.write_record(wanted)
        if data.mined is not None:
            data.mined.save(record.folder / NEGATIVES_FILE)
        return replace(_run_all(plan), examples=data.sets[0].examples)


def load_best(plan: SeedRuns) -> FineTuneResult:
    """Return the result of the best run, whose model is in `output`."""
    saved = SavedFineTuning.read(plan.output)
    saved.check_files(plan.output)
    return FineTuneResult(plan.output, saved)


def _run_all(plan: SeedRuns) -> FineTuneResult:
    """Run all unfinished seeds and write the best model into `output`."""
    metric = plan.data.task.metric
    comparison = SeedComparison(metric, run_seeds(plan))
    best = comparison.best_seed
    if not math.isfinite(comparison.values[best]):
        raise NonFiniteError(
            f"none of {pluralize(plan.num_seeds, 'run')} has a value for {metric}; see the logs in"
            f" {plan.folder}"
        )
    remove_folder(plan.output / SEEDS_FILE)  # a file about fewer seeds is now out of date
    write_best(plan, comparison)
    # Before writing the file that marks the runs as finished: nothing removes leftovers later.
    drop_weights(plan, comparison)
    saved = SavedSeeds(metric=metric, values=dict(comparison.values), best=best)
    saved.save(plan.output / SEEDS_FILE)
    return replace(load_best(plan), comparison=comparison)


def run_seeds(plan: SeedRuns) -> dict[int, float]:
    """Run all seeds; return the metric of each, NaN for failed ones."""
    metric, values = plan.data.task.metric, dict[int, float]()
    seconds, num_trained = 0.0, 0  # of the runs in this process
    for number, seed in enumerate(plan.seeds):
        output = plan.find_output(seed)
        if (output / METRICS_FILE).exists():
            run = Run(output / RUN_FOLDER)
            with open_run(run, output):
                drop_left_checkpoints(run)
            values[seed] = read_value(output, metric)
        else:
            left = ""
            if num_trained:
                rest = estimate_seconds_left(seconds, num_trained, plan.num_seeds - number)
                left = f"; about {math.ceil(rest / 60):,} min left in all"
            announce(f"run {number + 1:,} of {plan.num_seeds:,}: seed {seed}{left}")
            started = time.monotonic()
            values[seed] = try_seed(plan, seed)
            seconds += time.monotonic() - started
            num_trained += 1
        drop_weights(plan, SeedComparison(metric, values))
    return values


def try_seed(plan: SeedRuns, seed: int) -> float:
    """Train with one seed and return the metric; NaN if the run diverged."""
    output = plan.find_output(seed)
    try:
        plan.run(seed)
    except NonFiniteError as error:
        announce(f"{output.name} failed, and counts as the worst: {error}")
        if plan.settings.keep is None:
            drop_checkpoints(Run(output / RUN_FOLDER))
        return math.nan
    return read_value(output, plan.data.task.metric)


def read_value(output: Path, metric: str) -> float:
    """Read the metric of a finished run."""
    return SavedFineTuning.read(output).metrics.get(metric, math.nan)


def drop_weights(plan: SeedRuns, comparison: SeedComparison) -> None:
    """Remove the weights of all runs but the best; their metrics and reports stay."""
    with delay_stop_signals():  # a file that is half removed would be left
        for seed in comparison.values.keys() - {comparison.best_seed}:
            for name in (WEIGHTS_FILE, ADAPTER_FOLDER):
                remove_folder(plan.find_output(seed) / name)


def write_best(plan: SeedRuns, comparison: SeedComparison) -> None:
    """Write the best run's model into `output`, with a card and a report that compare the runs."""
    seed = comparison.best_seed
    folder, settings = plan.find_output(seed), plan.choose(seed)
    if not (folder / WEIGHTS_FILE).exists():  # with fewer seeds, another run was the best
        announce(
            f"{folder.name} is now the best and is trained again, because its weights were removed"
        )
        remove_folder(folder)
        plan.run(seed)
    has_adapter = settings.lora is not None
    opened = plan.recipe.parent if has_adapter else OpenModel.open(folder)
    plan.data.adapt(opened)
    parent = open_pretrained(opened, plan.data.task, settings)
    run, saved = Run(folder / RUN_FOLDER), SavedFineTuning.read(folder)
    machine = Machine.choose(
        keep_precision(settings, run.read_record()), lambda: parent.config.hidden_size
    )
    adapter = folder / ADAPTER_FOLDER if has_adapter else None
    job = build_job(plan.data, parent, machine, settings, checkpoint=adapter)
    final = evaluate_model(job, SavedTask.load(folder / TASK_FILE).numbers)
    runs = [Run(plan.find_output(seed) / RUN_FOLDER) for seed in comparison.finite_seeds]
    saved = saved.model_copy(update={"verdict": judge_held_out(job, final, runs)})
    write_model(plan.output, run, job, final, saved, comparison)


def read_finished(plan: SeedRuns) -> FineTuneResult | None:
    """Return the result of finished runs; None if some seeds aren't done."""
    path = plan.output / SEEDS_FILE
    if not path.exists():
        return None
    saved = SavedSeeds.load(path)
    if list(saved.values) != list(plan.seeds):
        return None
    announce(f"{plan.output} is already finished; nothing is trained")
    return replace(load_best(plan), comparison=SeedComparison(saved.metric, saved.values))
