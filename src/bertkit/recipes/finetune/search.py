"""A search: several fine-tuning runs, over the paper's grid, seeds, or both; keeps the best one.

Each run has its own folder in `search/`, like a single run, but the data is read once and, without
a held-out file, split once. Finished runs aren't repeated.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.errors import NonFiniteError, pluralize
from bertkit.base.files import remove_folder
from bertkit.base.progress import announce, estimate_seconds_left
from bertkit.checkpoints.huggingface import WEIGHTS_FILE
from bertkit.checkpoints.run_folder import METRICS_FILE, RUN_FOLDER, SavedNumber
from bertkit.recipes.finetune.card import SavedFineTuning
from bertkit.recipes.finetune.comparison import Comparison, Trial, list_trials
from bertkit.recipes.finetune.evaluation import evaluate_model
from bertkit.recipes.finetune.examples import open_tables
from bertkit.recipes.finetune.prepared import (
    Prepared,
    identify,
    open_pretrained,
    prepare,
    read_task,
)
from bertkit.recipes.finetune.result import FineTuneResult, write_model
from bertkit.recipes.finetune.run import (
    SEARCH_FOLDER,
    Sources,
    build_job,
    check_kind,
    describe_run,
    finetune,
    list_paths,
)
from bertkit.recipes.finetune.settings import FineTuneSettings, GridSearchSettings
from bertkit.tasks.settings import TaskSettings
from bertkit.tasks.table import TASKS
from bertkit.training.job import Machine
from bertkit.training.lifecycle import (
    drop_checkpoints,
    drop_left_checkpoints,
    keep_run,
    open_run,
    replace_run,
)
from bertkit.training.ranks import refuse_ranks
from bertkit.training.run import Run, RunRecord, check_resume, keep_precision, recognize_source

SEARCH_FILE = "search.json"
STOPPED = "stopped; the same command resumes with the runs that aren't finished"


class SavedSearch(ChecksummedModel):
    """The content of `search.json`, which is written when all runs are done."""

    description: ClassVar[str] = "the result of a search"

    format_version: Literal[1] = 1
    metric: str
    values: dict[str, SavedNumber]  # by the run's folder; null if a run has no value
    best: str  # the folder of the run whose model was kept


@dataclass(frozen=True)
class Search:
    """The plan of a search, common to all its runs."""

    sources: Sources
    output: Path  # the folder of the best run's model
    task_settings: TaskSettings
    settings: FineTuneSettings
    trials: Sequence[Trial]

    @property
    def folder(self) -> Path:
        """The folder of the runs."""
        return self.output / SEARCH_FOLDER

    def run(self, trial: Trial, prepared: Prepared) -> FineTuneResult:
        """Run one trial; errors as in `finetune`."""
        chosen = trial.choose(self.settings)
        place = self.folder / trial.folder
        return finetune(self.sources, place, self.task_settings, chosen, prepared)


def search(
    sources: Sources,
    output: Path,
    task_settings: TaskSettings,
    settings: FineTuneSettings,
    choice: GridSearchSettings,
) -> FineTuneResult:
    """Fine-tune several times, or resume a search; keep the best. Errors are as in `finetune`."""
    refuse_ranks("a search (--search, --seeds)")
    plan = Search(sources, output, task_settings, settings, list_trials(choice, settings))
    for trial in plan.trials:
        trial.choose(settings)  # validate all settings now, not after hours of training
    record = Run(plan.folder)
    check = partial(check_kind, kind=SEARCH_FOLDER)
    with open_run(
        record, output, inputs=list_paths(sources), check=check, describe_stop=lambda: STOPPED
    ):
        old = record.read_record()
        plan = replace(plan, settings=keep_precision(settings, old))
        wanted = recognize_source(old, describe_search(plan, choice), "model")
        is_replaced = old is not None and not keep_run(old, wanted, overwrite=settings.overwrite)
        if is_replaced:
            plan, old = replace(plan, settings=settings), None
            wanted = describe_search(plan, choice)
        elif (finished := read_finished_search(plan)) is not None:
            return finished
        prepared, facts = prepare_search(plan)
        wanted = wanted.model_copy(update={"source": facts})
        if old is not None:
            check_resume(old, wanted)
        if is_replaced:  # only now, as data and model can be read
            replace_run(record, output)
            remove_folder(output / SEARCH_FILE)
        record.write_record(wanted)
        return _search(plan, prepared)


def load_best(plan: Search) -> FineTuneResult:
    """Return the result of the best run, whose model is in `output`."""
    saved = SavedFineTuning.read(plan.output)
    saved.check_files(plan.output)
    return FineTuneResult(plan.output, saved)


def describe_search(plan: Search, choice: GridSearchSettings) -> RunRecord:
    """Build the search's record, without the number of seeds, which may grow."""
    tables = open_tables(plan.sources.train, plan.sources.dev, plan.settings)
    record = describe_run(plan.sources, tables, plan.task_settings, plan.settings)
    settings = {**record.settings, "search": choice.search}
    return record.model_copy(update={"settings": settings})


def prepare_search(plan: Search) -> tuple[Prepared, dict[str, object]]:
    """Read and encode the data once; return it with the parent checkpoint's facts."""
    kind, sources, settings = TASKS[plan.sources.task].load(), plan.sources, plan.settings
    tables = open_tables(sources.train, sources.dev, settings)
    task, data = read_task(kind, tables, plan.task_settings, settings)
    parent = open_pretrained(sources.model, sources.revision, task, settings)
    return prepare(task, data, parent.tokenizer), identify(parent)


def _search(plan: Search, prepared: Prepared) -> FineTuneResult:
    """Run all unfinished trials and write the best model into `output`."""
    metric = prepared.task.metric
    values = run_trials(plan, prepared)
    comparison = Comparison.build(metric, values)
    if not math.isfinite(values[comparison.best_trial]):
        raise NonFiniteError(
            f"none of {pluralize(len(values), 'run')} has a value for {metric}; see the logs in"
            f" {plan.folder}"
        )
    remove_folder(plan.output / SEARCH_FILE)  # a file about fewer seeds is now out of date
    write_best(plan, prepared, comparison)
    # Before writing the file that marks the search as finished: nothing removes leftovers later.
    drop_weights(plan, values, {comparison.best_trial})
    saved = SavedSearch(
        metric=metric,
        values={trial.folder: value for trial, value in values.items()},
        best=comparison.best_trial.folder,
    )
    saved.save(plan.output / SEARCH_FILE)
    return replace(load_best(plan), comparison=comparison)


def run_trials(plan: Search, prepared: Prepared) -> dict[Trial, float]:
    """Run all trials; return the metric of each, NaN for failed ones."""
    values: dict[Trial, float] = {}
    seconds, epochs = 0.0, 0.0  # of the runs in this process
    for number, trial in enumerate(plan.trials, start=1):
        if (plan.folder / trial.folder / METRICS_FILE).exists():
            place = plan.folder / trial.folder
            run = Run(place / RUN_FOLDER)
            with open_run(run, place):
                drop_left_checkpoints(run)
            values[trial] = _read_value(plan, trial, prepared)
        else:
            left = describe_time_left(seconds, epochs, plan.trials[number - 1 :])
            words = f"{trial.cell.describe()}, seed {trial.seed}{left}"
            announce(f"run {number:,} of {len(plan.trials):,}: {words}")
            started = time.monotonic()
            values[trial] = try_trial(plan, trial, prepared)
            seconds += time.monotonic() - started
            epochs += trial.cell.epochs or 1.0
        drop_weights(plan, values, _keep_so_far(values, trial))
    return values


def try_trial(plan: Search, trial: Trial, prepared: Prepared) -> float:
    """Run one trial and return its metric; NaN if it diverged."""
    try:
        plan.run(trial, prepared)
    except NonFiniteError as error:
        announce(f"{trial.folder} failed, and counts as the worst: {error}")
        if not plan.settings.keep_checkpoints:
            drop_checkpoints(Run(plan.folder / trial.folder / RUN_FOLDER))
        return math.nan
    return _read_value(plan, trial, prepared)


def _read_value(plan: Search, trial: Trial, prepared: Prepared) -> float:
    saved = SavedFineTuning.read(plan.folder / trial.folder)
    return saved.metrics.get(prepared.task.metric, math.nan)


def _keep_so_far(values: Mapping[Trial, float], last: Trial) -> set[Trial]:
    """Return the runs that may still win: the best of the earlier cells and of the current cell."""
    groups = (
        {trial: value for trial, value in values.items() if (trial.cell == last.cell) is is_last}
        for is_last in (False, True)
    )
    return {Comparison.build("", group).best_trial for group in groups if group}


def drop_weights(plan: Search, values: Mapping[Trial, float], kept: set[Trial]) -> None:
    """Remove the weights of runs that can't win; their metrics and reports stay."""
    for trial in values.keys() - kept:
        remove_folder(plan.folder / trial.folder / WEIGHTS_FILE)


def write_best(plan: Search, prepared: Prepared, comparison: Comparison) -> None:
    """Write the best run's model into `output`, with a card and a report that compare the runs."""
    trial = comparison.best_trial
    place, settings = plan.folder / trial.folder, trial.choose(plan.settings)
    if not (place / WEIGHTS_FILE).exists():  # with fewer seeds, another run was the best
        announce(
            f"{trial.folder} is now the best and is trained again, because its weights were removed"
        )
        remove_folder(place)
        plan.run(trial, prepared)
    parent = open_pretrained(place, None, prepared.task, settings)
    run, saved = Run(place / RUN_FOLDER), SavedFineTuning.read(place)
    machine = Machine.choose(
        keep_precision(settings, run.read_record()), lambda: parent.config.hidden_size
    )
    job = build_job(prepared, parent, machine, settings)
    write_model(plan.output, run, job, evaluate_model(job), saved, comparison)


def read_finished_search(plan: Search) -> FineTuneResult | None:
    """Return the result of a finished search; None if some runs aren't done."""
    path = plan.output / SEARCH_FILE
    if not path.exists():
        return None
    saved = SavedSearch.load(path)
    if list(saved.values) != [trial.folder for trial in plan.trials]:
        return None
    values = {trial: saved.values[trial.folder] for trial in plan.trials}
    announce(f"{plan.output} is already finished; nothing is trained")
    return replace(load_best(plan), comparison=Comparison.build(saved.metric, values))


def describe_time_left(seconds: float, epochs: float, trials: Sequence[Trial]) -> str:
    """Describe the time for the remaining runs, from that of the epochs so far; may be empty."""
    if not epochs:
        return ""
    left = sum(trial.cell.epochs or 1.0 for trial in trials)
    minutes = math.ceil(estimate_seconds_left(seconds, epochs, left) / 60)
    return f"; about {minutes:,} min left in all"
