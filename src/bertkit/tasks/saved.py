"""`task.json`: the task of a model folder, its settings and fitted numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, JsonValue, field_validator

from bertkit.base.checksummed_json import ChecksummedModel
from bertkit.base.checksums import FileRecord
from bertkit.base.earlier_settings import update_settings
from bertkit.base.errors import BertkitError, CheckpointError
from bertkit.base.settings import Settings, select, validate
from bertkit.checkpoints.families import find_family
from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.data.tables.records import RecordTable, open_records
from bertkit.data.tables.settings import LayoutSettings, RecordSettings
from bertkit.models.bert.config import BertConfig
from bertkit.tasks.labeled_table import check_columns
from bertkit.tasks.settings import with_columns
from bertkit.tasks.table import TASKS
from bertkit.tokenization.folder import read_max_length

if TYPE_CHECKING:
    from bertkit.tasks.task import AnyTask, TaskExample, TaskPrediction

TEMPERATURE = "temperature"  # key in a task's `numbers`
# Tasks of model folders without a task.json, as other tools write them.
BY_ARCHITECTURE = {
    "BertForSequenceClassification": "classify",
    "BertForTokenClassification": "tag",
    "BertForQuestionAnswering": "answer",
    "BertForMultipleChoice": "choose",
}


class SavedTask(ChecksummedModel):
    """The content of `task.json`."""

    description: ClassVar[str] = "a fine-tuned model's task"
    limit_bytes: ClassVar[int] = 4 << 20
    error_kind: ClassVar[type[BertkitError]] = CheckpointError

    format_version: Literal[1] = 1
    task: str  # a key of `TASKS`
    settings: dict[str, Any]
    # fitted on held-out data after training
    numbers: dict[str, float] = Field(default_factory=dict)
    # encoding and delimiter of the training data, where they differ from the default
    reading: dict[str, str] = Field(default_factory=dict)

    _update_settings = field_validator("settings")(update_settings)


def save_task(folder: Path, task: "AnyTask") -> dict[str, FileRecord]:
    """Write `task.json`; return its size and checksum, by file name."""
    saved = SavedTask(
        task=task.name,
        settings=task.settings.model_dump(mode="json"),
        numbers=dict(task.numbers),
        reading=dict(task.reading),
    )
    return {TASK_FILE: saved.save(folder / TASK_FILE)}


def list_scorer_files(
    task: "AnyTask", examples: "Sequence[TaskExample]", predictions: "Sequence[TaskPrediction]"
) -> dict[str, dict[str, JsonValue]]:
    """Return the files for official scorers by name; none of which no prediction says anything."""
    rows = list(zip(examples, predictions, strict=True))
    files = {
        name: {example.example_id: getattr(prediction, key) for example, prediction in rows}
        for name, key in task.scorer_files.items()
    }
    return {
        name: content
        for name, content in files.items()
        if any(value is not None for value in content.values())
    }


def load_task(folder: Path, config: BertConfig, architecture: str | None) -> "AnyTask":
    """Load the task of a model folder, including folders written by other tools."""
    path = source = folder / TASK_FILE
    if path.exists():
        saved = SavedTask.load(path)
    elif architecture in BY_ARCHITECTURE:
        source = folder
        longest = config.max_length
        as_long_as_it_takes = {"max_length": min(longest, read_max_length(folder) or longest)}
        name = BY_ARCHITECTURE[architecture]
        is_number = config.problem_type == "regression"
        if config.problem_type is None:  # as transformers recognizes a regression
            is_number = config.num_labels == 1
        name = "regress" if name == "classify" and is_number else name
        saved = SavedTask(task=name, settings=as_long_as_it_takes)
    else:
        family = find_family({"model_type": config.model_type})
        raise CheckpointError(
            f"{folder} isn't a fine-tuned model: it has no {TASK_FILE}, and its architecture is"
            f" {architecture and family.their_class(architecture)}; make one with"
            " `bertkit finetune`"
        )
    if saved.task not in TASKS:
        raise CheckpointError(
            f"{path}: there is no task {saved.task!r:.40}; there are {', '.join(TASKS)}"
        )
    if not saved.numbers.get(TEMPERATURE, 1.0) > 0.0:
        temperature = saved.numbers[TEMPERATURE]
        raise CheckpointError(f"{path}: the temperature is {temperature}, and must be above 0")
    entry = TASKS[saved.task]
    settings = validate(entry.settings, saved.settings, str(source))
    task = entry.load().from_config(settings, config, saved.numbers)
    return replace(task, reading=saved.reading)


def open_for_model(
    model: str,
    source: str,
    settings: LayoutSettings,
    columns: Settings,
    *,
    split: str,
    needs_answer: bool = False,
) -> RecordTable:
    """Open rows for a model, and check their columns, before it or torch is loaded.

    They are read as the training data were where nothing else is given. Of a model that isn't in a
    folder nothing is known yet.
    """
    saved = find_saved(model)
    reading, kept = select(RecordSettings, settings), find_reading(model)
    table = open_records(source, reading, split=split, kept=kept)
    if saved is not None and saved.task in TASKS:
        task = validate(TASKS[saved.task].settings, saved.settings, TASK_FILE)
        check_columns(with_columns(task, columns), table, needs_answer=needs_answer)
    return table


def find_reading(model: str | Path) -> Mapping[str, str]:
    """Return how a model's training data were read, where that isn't the default."""
    saved = find_saved(model)
    return {} if saved is None else saved.reading


def find_saved(model: str | Path) -> SavedTask | None:
    """Load the `task.json` of a model's folder; None if it has none, or isn't a folder."""
    path = Path(model) / TASK_FILE
    return SavedTask.load(path) if path.exists() else None


def requires_pairs(folder: Path) -> bool:
    """Whether a model folder's `task.json` says that every example is a pair of texts."""
    path = folder / TASK_FILE
    return path.exists() and SavedTask.load(path).settings.get("pairs") is True
