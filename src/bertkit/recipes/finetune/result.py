"""The end of a run: the best checkpoint becomes a model's folder with all that is known of it."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from bertkit.base.checksums import record_file
from bertkit.base.errors import DamagedFileError, MissingFileError
from bertkit.base.files import remove_folder, write_file, write_json
from bertkit.base.members import find_member
from bertkit.base.progress import announce
from bertkit.base.sealed import read_sealed_json, write_sealed_json
from bertkit.base.settings import describe_validation
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.recipes.finetune.card import CARD_FILE, PICTURE_FILE, build_card
from bertkit.recipes.finetune.comparison import Comparison
from bertkit.recipes.finetune.examples import SetCounts
from bertkit.recipes.finetune.facts import Facts
from bertkit.recipes.finetune.job import Materials, load_checkpoint
from bertkit.recipes.finetune.judging import Judgement, judge
from bertkit.recipes.finetune.page import build_page
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.recipes.finetune.steps import count_epoch_steps
from bertkit.reports.picture import write_svg
from bertkit.reports.report import write_report
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.saved import save_task
from bertkit.tasks.sections import draw_confusion
from bertkit.training.course import Course
from bertkit.training.log import read_log
from bertkit.training.run import Run, RunRecord, RunState, check_resume

METRICS_FILE = "metrics.json"
REPORT_FILE = "report.html"

MaybeNumber = float | None


@dataclass(frozen=True)
class FineTuneResult:
    """What a run came to.

    Attributes:
        output: the model's folder.
        num_steps: steps of the whole run.
        best_step: the step after which the model was kept.
        evaluation: of that model on the held-out examples; of a run that was finished before, its
            metrics, intervals and warnings.
        comparison: with the other runs of a search; None where there was none.
    """

    output: Path
    num_steps: int
    best_step: int
    evaluation: Evaluation
    comparison: Comparison | None = None


class SavedResult(BaseModel):
    """The content of `metrics.json`; a number that isn't defined is null.

    Attributes:
        task: a key of `TASKS`.
        metric: the one by which the task is judged.
        metrics: of the held-out examples.
        intervals: their 95 % intervals.
        baseline: the metrics of always saying the most frequent label.
        warnings: what is odd.
        num_steps: that were trained.
        best_step: the one whose model this is.
        best_epoch: how often it had seen every example.
        has_ended_early: whether nothing had become better for long enough.
        train: what was met in the training examples.
        dev: what was met in the held-out ones.
        files: SHA-256 of the model's files, by name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format_version: Literal[1] = 1
    task: str
    metric: str
    metrics: dict[str, MaybeNumber]
    intervals: dict[str, tuple[MaybeNumber, MaybeNumber]]
    baseline: dict[str, MaybeNumber]
    warnings: tuple[str, ...]
    num_steps: int
    best_step: int
    best_epoch: float
    has_ended_early: bool
    train: SetCounts
    dev: SetCounts
    files: dict[str, str] = {}


def finish(
    run: Run, materials: Materials, state: RunState, settings: FineTuneSettings
) -> FineTuneResult:
    """Evaluate the best checkpoint and write the model's folder; `metrics.json` comes last.

    Raises:
        StorageError: the disk refused; the same command finishes.
    """
    best_step = state.best_step or state.step
    materials = load_checkpoint(run, best_step, materials)
    judgement = judge(materials)
    saved = describe_result(materials, judgement, state, settings)
    output = run.folder.parent
    write_model(output, run, materials, judgement, saved)
    drop_checkpoints(run, settings)
    return FineTuneResult(output, state.step, best_step, judgement.evaluation)


def write_model(
    output: Path,
    run: Run,
    materials: Materials,
    judgement: Judgement,
    saved: SavedResult,
    comparison: Comparison | None = None,
) -> None:
    """Write a model's folder; `metrics.json` comes last.

    Args:
        output: the folder.
        run: that trained it.
        materials: with the best weights.
        judgement: of those.
        saved: what is told of the run for good.
        comparison: with the other runs of a search.

    Raises:
        StorageError: the disk refused.
    """
    record = run.read_record()
    assert record is not None
    facts = Facts(
        name=output.resolve().name,
        record=record,
        judgement=judgement,
        counts=materials.counts,
        num_steps=saved.num_steps,
        best_epoch=saved.best_epoch,
        steps_per_epoch=round(saved.best_step / saved.best_epoch),
        has_ended_early=saved.has_ended_early,
        comparison=comparison,
    )
    files = {
        **materials.model.save_pretrained(output),
        **materials.save_tokenizer(output),
        **save_task(output, judgement.task),
    }
    saved = saved.model_copy(update={"files": {name: file.sha256 for name, file in files.items()}})
    write_descriptions(output, facts, run)
    found = judgement.task.prediction_files(materials.dev_examples, judgement.predictions)
    for name, content in found.items():
        write_json(output / name, content)
    write_sealed_json(output / METRICS_FILE, saved.model_dump(mode="json"))


def describe_result(
    materials: Materials, judgement: Judgement, state: RunState, settings: FineTuneSettings
) -> SavedResult:
    """What is told of the run for good."""
    evaluation, best_step = judgement.evaluation, state.best_step or state.step
    return SavedResult(
        task=judgement.task.name,
        metric=judgement.task.metric,
        metrics=_defined(evaluation.metrics),
        intervals={
            name: (_define(low), _define(high))
            for name, (low, high) in evaluation.intervals.items()
        },
        baseline=_defined(judgement.baseline),
        warnings=evaluation.warnings,
        num_steps=state.step,
        best_step=best_step,
        best_epoch=best_step / count_epoch_steps(len(materials.train), settings),
        has_ended_early=state.has_ended_early,
        train=materials.counts["train"],
        dev=materials.counts["dev"],
    )


def write_descriptions(output: Path, facts: Facts, run: Run) -> None:
    """Write what people read: report, card and picture."""
    matrix = draw_confusion(facts.judgement.evaluation)
    if facts.has_picture and matrix is not None:
        write_svg(output / PICTURE_FILE, matrix)
    course = Course.from_rows(read_log(run.log_path))
    write_report(output / REPORT_FILE, build_page(facts, course))
    write_file(output / CARD_FILE, build_card(facts).encode())


def read_finished(run: Run, wanted: RunRecord, settings: FineTuneSettings) -> FineTuneResult | None:
    """The result of a run that is finished; None where there is still something to do.

    Raises:
        ResumeError: the run was begun with other settings or data.
        MissingFileError: a file of the model that it wrote is gone.
        DamagedFileError: one isn't what was written, or its record isn't.
    """
    record = run.read_record()
    if record is None:
        return None
    check_resume(record, wanted.model_copy(update={"model": record.model}))
    output = run.folder.parent
    if not (output / METRICS_FILE).exists():
        return None
    result = read_result(output)
    if record.settings.get("keep_checkpoints") is False:  # a run that was killed left them
        with run.locked():
            drop_checkpoints(run, settings)
    announce(f"{output} was finished before: nothing is trained")
    return result


def read_result(output: Path) -> FineTuneResult:
    """The result of a finished run, by its files.

    Raises:
        MissingFileError: a file of the model that it wrote is gone.
        DamagedFileError: one isn't what was written, or its record isn't.
    """
    saved = read_saved(output)
    cure = f"restore it, or remove {output / METRICS_FILE} to train again"
    for name, sha256 in saved.files.items():
        if not (output / name).exists():
            raise MissingFileError(f"{output / name} is gone; {cure}")
        if record_file(find_member(output, name)).sha256 != sha256:
            raise DamagedFileError(f"{output / name} isn't what was written; {cure}")
    return FineTuneResult(output, saved.num_steps, saved.best_step, recall_evaluation(saved))


def recall_evaluation(saved: SavedResult) -> Evaluation:
    """As much of an evaluation as is saved: metrics, intervals and warnings."""
    return Evaluation(
        metrics={name: _undefine(value) for name, value in saved.metrics.items()},
        intervals={
            name: (_undefine(low), _undefine(high)) for name, (low, high) in saved.intervals.items()
        },
        warnings=saved.warnings,
    )


def read_saved(output: Path) -> SavedResult:
    """The content of a folder's `metrics.json`.

    Raises:
        MissingFileError: there is none.
        DamagedFileError: it isn't what was written.
    """
    path = output / METRICS_FILE
    try:
        return SavedResult.model_validate(read_sealed_json(path))
    except ValidationError as error:
        raise DamagedFileError(f"{path}: {describe_validation(error)}") from None


def drop_checkpoints(run: Run, settings: FineTuneSettings) -> None:
    """Remove the checkpoints of a finished run, unless they are to be kept."""
    if not settings.keep_checkpoints:
        for path in list_checkpoints(run.folder):
            remove_folder(path)


def _defined(values: dict[str, Any]) -> dict[str, MaybeNumber]:
    return {name: _define(value) for name, value in values.items()}


def _define(value: float) -> MaybeNumber:
    return float(value) if math.isfinite(value) else None


def _undefine(value: MaybeNumber) -> float:
    return math.nan if value is None else value
