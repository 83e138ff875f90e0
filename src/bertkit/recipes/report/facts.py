"""The facts of a run, from its files; they are only read, because the run may be in progress."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from pydantic import JsonValue

from bertkit.base.errors import BertkitError, InputError, MissingFileError, storage_errors
from bertkit.base.progress import announce
from bertkit.base.wings import TEXT_TASKS
from bertkit.checkpoints.families import FAMILIES
from bertkit.checkpoints.formats import describe_model, name_model
from bertkit.checkpoints.run_folder import METRICS_FILE, RUN_FOLDER, list_checkpoints
from bertkit.data.shards import MANIFEST, ShardSet
from bertkit.recipes.defaults import list_defaults
from bertkit.recipes.finetune.run import OLD_SEEDS_FOLDER, SEEDS_FOLDER
from bertkit.recipes.finetune.saved import SavedFineTuning
from bertkit.tasks.objectives.settings import ObjectiveName
from bertkit.training.history import TrainingHistory
from bertkit.training.log import read_log
from bertkit.training.record import LOG_FILE, RECORD_FILE, RunRecord
from bertkit.training.run import Run

NAMES_OF_MODELS = frozenset({"model", "size"})  # the settings that may have a path
SHARDS_FOLDER = "shards"  # where `bertkit demo` writes them


@dataclass(frozen=True)
class RunFacts:
    """The facts of a run."""

    path: Path  # the run, or a folder that contains it
    run: Run
    record: RunRecord
    history: TrainingHistory
    result: SavedFineTuning | None = None  # of a finished fine-tuning
    shards: ShardSet | None = None  # of a pre-training run; None if unknown

    @property
    def name(self) -> str:
        """The name to display; a folder just called run is prefixed with its parent's name."""
        folder = self.path.resolve()
        return name_model(folder) or str(folder)

    @property
    def task(self) -> str | None:
        """The task of a fine-tuning, or what a model that writes is for; None for pre-training."""
        stored = self.record.settings
        task = stored.get("task", stored.get("kind"))
        return None if task is None else str(task)

    @property
    def writes_texts(self) -> bool:
        """Whether the run trains a model that writes texts."""
        return self.task in TEXT_TASKS

    @property
    def objective(self) -> ObjectiveName:
        """The pre-training objective."""
        name: ObjectiveName = self.record.settings.get("objective", "bert")
        return name

    @property
    def kind(self) -> str:
        """The command that made the run."""
        return "pretrain" if self.task is None else f"finetune {self.task}"

    @property
    def initial_model(self) -> str:
        """The initial model, or the one whose config is used, without its parent folders."""
        return str(self.settings.get("model") or self.settings.get("size") or "a BERT")

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The settings, with models named without their parent folders."""
        return _without_folders(self.record.settings)

    @property
    def is_finished(self) -> bool:
        """Whether the run was evaluated at its last step, or stopped early."""
        last = self.history.held_out.last("step")
        return self.history.has_ended_early or last == self.record.num_steps

    @property
    def checkpoint(self) -> Path | None:
        """The newest checkpoint; None if there is none."""
        return next(reversed(list_checkpoints(self.run.folder)), None)

    @property
    def defaults(self) -> dict[str, JsonValue]:
        """The default settings of this version, with models named without parent folders."""
        source = str(self.run.folder / RECORD_FILE)
        return _without_folders(list_defaults(self.record.settings, source))


def read_facts(path: Path, data: Path | None = None) -> RunFacts:
    """Read a run without locking it; `data` are its shards, by default those beside it."""
    run = find_run(path)
    record = run.read_record()
    assert record is not None, "find_run has seen it"
    history = TrainingHistory.from_rows(read_log(run.log_path))
    if history.is_empty:
        raise InputError(
            f"{run.log_path} has no row yet, so there is nothing to show; try again after the run's"
            " first evaluation"
        )
    facts = RunFacts(path, run, record, history)
    if facts.task is None:
        if (kind := record.model.get("model_type", "bert")) not in FAMILIES:
            raise InputError(
                f"{path} trained a model of the type {kind!r:.80}; reports are of runs of"
                " `bertkit pretrain`, `finetune` and `demo`"
            )
        known = get_args(ObjectiveName)
        if facts.objective not in known:
            raise InputError(
                f"{path} was started by another version, with the objective"
                f" {facts.objective!r:.40}, and this one knows {', '.join(known)}; use that version"
            )
        return replace(facts, shards=find_shards(facts, data))
    if data is not None:
        raise InputError(
            f"{path} is of `bertkit {facts.kind}`; data is for pre-training runs; leave it out"
        )
    output = run.folder.parent
    if facts.writes_texts or not (output / METRICS_FILE).is_file():
        return facts
    return replace(facts, result=SavedFineTuning.read(output))


def find_run(path: Path) -> Run:
    """Find the run in a folder."""
    with storage_errors(path, "read"):
        for folder in (path, path / SEEDS_FOLDER, path / OLD_SEEDS_FOLDER):
            pattern = {SEEDS_FOLDER: "seed*", OLD_SEEDS_FOLDER: "*/seed*"}.get(folder.name)
            has_seeds = pattern is not None and not (folder / LOG_FILE).exists()
            if has_seeds and (folder / RECORD_FILE).exists():
                raise InputError(f"{path} has several seeds; name its runs: {folder}/{pattern}")
        for folder in (path, path / RUN_FOLDER):
            if (folder / RECORD_FILE).exists():
                return Run(folder)
        if not path.exists():
            raise MissingFileError(f"{path} doesn't exist")
    raise InputError(
        f"{path} isn't a run: there is no {RECORD_FILE}, neither in it nor in {path / RUN_FOLDER};"
        " name the --output of `bertkit pretrain`, `finetune` or `demo`"
    )


def find_shards(facts: RunFacts, data: Path | None) -> ShardSet | None:
    """Return the run's training shards: those named, or those beside it if fingerprints match."""
    if data is not None:
        shards = ShardSet.open(data)
        if shards.fingerprint != facts.record.data_fingerprint:
            raise InputError(f"{facts.path} wasn't trained on {data}: their fingerprints differ")
        return shards
    beside = facts.run.folder.parent / SHARDS_FOLDER
    if not (beside / MANIFEST).is_file():
        return None
    try:
        shards = ShardSet.open(beside)
    except BertkitError as error:
        announce(f"the report leaves out the shards beside the run: {error}")
        return None
    return shards if shards.fingerprint == facts.record.data_fingerprint else None


def _without_folders(values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Strip parent folders from model paths, because pages may be shared with others."""
    return {
        name: describe_model(value) if name in NAMES_OF_MODELS and isinstance(value, str) else value
        for name, value in values.items()
    }
