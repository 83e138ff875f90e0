"""What is known of a run by its files, which are only read: it may still be going."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from bertkit.base.errors import BertkitError, InputError, MissingFileError, storage_errors
from bertkit.base.progress import announce
from bertkit.base.settings import parse_settings
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.data.shards import MANIFEST, ShardSet
from bertkit.models.recurrent.nets import NETS
from bertkit.objectives.settings import DEFAULT_OBJECTIVE, ObjectiveName
from bertkit.recipes.finetune.result import SavedResult
from bertkit.recipes.finetune.run import RUN_FOLDER, SEARCH_FOLDER
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.recipes.seq2seq.kinds import KINDS
from bertkit.tasks.table import TASKS
from bertkit.training.finished import METRICS_FILE
from bertkit.training.records.history import TrainingHistory
from bertkit.training.records.log import read_log
from bertkit.training.run import LOG_FILE, RECORD_FILE, Run, RunRecord

SHARDS_FOLDER = "shards"  # where `bertkit demo` puts them


@dataclass(frozen=True)
class RunFacts:
    """A run.

    Attributes:
        path: as it was named: the run, or a folder that holds it.
        run: the run itself.
        record: what it was begun with.
        course: what its log tells.
        result: what a finished fine-tuning came to; None for any other run.
        shards: what a pre-training run was trained on; None where they aren't known.
    """

    path: Path
    run: Run
    record: RunRecord
    course: TrainingHistory
    result: SavedResult | None = None
    shards: ShardSet | None = None

    @property
    def name(self) -> str:
        """For people: a folder that is just called run has that of the one that holds it."""
        folder = self.path.resolve()
        named = folder.name or str(folder)
        return f"{folder.parent.name}/{named}" if named == RUN_FOLDER else named

    @property
    def task(self) -> str | None:
        """The task of a fine-tuning, what is written from texts, or which net of a study it is.

        None for pre-training.
        """
        stored = self.record.settings
        task = stored.get("task", stored.get("kind", self.net))
        return None if task is None else str(task)

    @property
    def net(self) -> str | None:
        """What a recurrent net of a study is, in words; None for other models."""
        kind = str(self.record.model.get("model_type"))
        return kind.removeprefix("bertkit-").replace("-", " ") if kind in NETS else None

    @property
    def writes(self) -> bool:
        """Whether an encoder-decoder is trained, which writes texts."""
        return self.task in KINDS

    @property
    def objective(self) -> ObjectiveName:
        """What a pre-training run learns."""
        name: ObjectiveName = self.record.settings.get("objective", DEFAULT_OBJECTIVE)
        return name

    @property
    def kind(self) -> str:
        """The command that made the run."""
        if self.net is not None:
            return f"study ({self.net})"
        return "pretrain" if self.task is None else f"finetune {self.task}"

    @property
    def beginning(self) -> str:
        """The model that it began from, or whose sizes it has, without its folders."""
        return str(self.settings.get("start_from") or self.settings.get("model") or "a BERT")

    @property
    def settings(self) -> dict[str, Any]:
        """What was chosen; of a model that is a folder its name, without those it lies in."""
        return _without_folders(self.record.settings)

    @property
    def is_finished(self) -> bool:
        """Whether it is at its last step and evaluated there, or ended early."""
        last = self.course.held_out.last("step")
        return self.course.has_ended_early or last == self.record.num_steps

    @property
    def checkpoint(self) -> Path | None:
        """The newest one; None where there is none yet, or no more."""
        return next(reversed(list_checkpoints(self.run.folder)), None)

    @property
    def defaults(self) -> dict[str, Any]:
        """What this bertkit's settings would be by themselves; of a model its name, too."""
        if self.net is not None:  # its study chose all of them
            return self.settings
        source = str(self.run.folder / RECORD_FILE)
        return _without_folders(list_defaults(self.record, source))


def read_facts(path: Path, data: Path | None = None) -> RunFacts:
    """Read a run, without a lock and without a change to it.

    Args:
        path: the run, the folder of a fine-tuned model, or that of a demo.
        data: the shards that a pre-training run was trained on; None to take those beside it.
    """
    run = find_run(path)
    record = run.read_record()
    assert record is not None, "find_run has seen it"
    course = TrainingHistory.from_rows(read_log(run.log_path))
    if course.is_empty:
        raise InputError(
            f"{run.log_path} has no row yet, so there is nothing to show; ask again after the run's"
            " first evaluation"
        )
    facts = RunFacts(path, run, record, course)
    if facts.task is None:
        check_objective(facts)
        return replace(facts, shards=find_shards(facts, data))
    if data is not None:
        raise InputError(
            f"{path} is of `bertkit {facts.kind}`; --data is for pre-training runs: leave it out"
        )
    output = run.folder.parent
    if facts.writes or not (output / METRICS_FILE).is_file():
        return facts
    return replace(facts, result=SavedResult.read(output))


def find_run(path: Path) -> Run:
    """The run in a folder."""
    with storage_errors(path, "read"):
        for folder in (path, path / SEARCH_FOLDER):
            is_search = folder.name == SEARCH_FOLDER and not (folder / LOG_FILE).exists()
            if is_search and (folder / RECORD_FILE).exists():
                raise InputError(f"{path} is a search; name its runs: {folder / '*' / 'seed*'}")
        for folder in (path, path / RUN_FOLDER):
            if (folder / RECORD_FILE).exists():
                return Run(folder)
        if not path.exists():
            raise MissingFileError(f"{path} doesn't exist")
    raise InputError(
        f"{path} isn't a run: there is no {RECORD_FILE}, neither in it nor in {path / RUN_FOLDER};"
        " name the --output of `bertkit pretrain`, `finetune` or `demo`"
    )


def check_objective(facts: RunFacts) -> None:
    """Refuse a pre-training run of another version of which it isn't known what it learns."""
    known = get_args(ObjectiveName)
    if facts.objective not in known:
        raise InputError(
            f"{facts.path} was begun by another version, with the objective"
            f" {facts.objective!r:.40}, and this one knows {', '.join(known)}; use that version"
        )


def find_shards(facts: RunFacts, data: Path | None) -> ShardSet | None:
    """The shards that a run was trained on: those named, or those beside it if they are its own."""
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
        announce(f"the report goes without the shards beside the run: {error}")
        return None
    return shards if shards.fingerprint == facts.record.data_fingerprint else None


def list_defaults(record: RunRecord, source: str) -> dict[str, Any]:
    """The settings of a run's kind as they are where nothing is chosen but the model.

    Args:
        record: of the run.
        source: the record's file, for messages.
    """
    stored: Mapping[str, Any] = record.settings
    if (kind := KINDS.get(str(stored.get("kind")))) is not None:
        given = {name: stored[name] for name in ("model",) if stored.get(name)}
        return parse_settings(kind.settings, given, source).model_dump(mode="json")
    if stored.get("task") is None:
        given = {name: stored[name] for name in ("model", "start_from") if stored.get(name)}
        return parse_settings(PretrainSettings, given, source).model_dump(mode="json")
    given = {name: stored[name] for name in ("features",) if stored.get(name)}
    defaults = parse_settings(FineTuneSettings, given, source).model_dump(mode="json")
    entry = TASKS.get(str(stored["task"]))
    task = {} if entry is None else entry.settings().model_dump(mode="json")
    return {**task, **defaults}


def _without_folders(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for pages, which may be sent to others: a model's folder by its name alone."""
    return {
        name: _name_folder(value) if name in {"model", "start_from"} else value
        for name, value in values.items()
    }


def _name_folder(value: Any) -> Any:
    """The last part of a path, or two: a folder that is just called run says nothing."""
    if not isinstance(value, str):
        return value
    *_, parent, named = ("", *value.rstrip("/").split("/"))
    return f"{parent}/{named}" if parent and named == RUN_FOLDER else named
