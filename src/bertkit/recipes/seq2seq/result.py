"""The end of a run: the model's folder with all that is known of it."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from bertkit.base.checksums import record_file
from bertkit.base.errors import DamagedFileError, MissingFileError
from bertkit.base.files import remove_folder, write_file
from bertkit.base.members import find_member
from bertkit.base.progress import announce
from bertkit.base.sealed import read_sealed_json, write_sealed_json
from bertkit.base.settings import describe_validation
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.inference.rewriter_file import write_rewriter
from bertkit.recipes.seq2seq.card import CARD_FILE, build_card
from bertkit.recipes.seq2seq.examples import SetCounts
from bertkit.recipes.seq2seq.facts import Facts
from bertkit.recipes.seq2seq.job import Materials
from bertkit.recipes.seq2seq.judging import Choice, Judgement, choose_weights, judge
from bertkit.recipes.seq2seq.oddities import doubt_best
from bertkit.recipes.seq2seq.page import build_page
from bertkit.recipes.seq2seq.rhythm import count_epochs, order_pairs
from bertkit.recipes.seq2seq.settings import Seq2SeqSettings
from bertkit.reports.report import write_report
from bertkit.training.course import Course
from bertkit.training.log import read_log
from bertkit.training.run import Run, RunRecord, RunState, check_resume

METRICS_FILE = "metrics.json"
REPORT_FILE = "report.html"


class SavedResult(BaseModel):
    """The content of `metrics.json`; a number that isn't defined is null.

    Attributes:
        kind: a key of `KINDS`.
        metric: the one by which the best step was known.
        metrics: of the held-out pairs, as the model writes by itself.
        signatures: how they were computed.
        baseline: of copying the beginnings of what is read.
        warnings: what is odd.
        num_steps: that were trained.
        num_epochs: how often all pairs were seen.
        best_step: the best single one.
        averaged_steps: those whose mean the model is; empty where it is that of the best step.
        has_ended_early: whether nothing had become better for long enough.
        train: what was met in the training pairs.
        dev: what was met in the held-out ones.
        files: SHA-256 of the model's files, by name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format_version: Literal[1] = 1
    kind: str
    metric: str
    metrics: dict[str, float | None]
    signatures: dict[str, str]
    baseline: dict[str, float | None]
    warnings: tuple[str, ...]
    num_steps: int
    num_epochs: float
    best_step: int
    averaged_steps: tuple[int, ...]
    has_ended_early: bool
    train: SetCounts
    dev: SetCounts
    files: dict[str, str] = {}


@dataclass(frozen=True)
class Seq2SeqResult:
    """What a run came to.

    Attributes:
        output: the model's folder.
        saved: what `metrics.json` says.
    """

    output: Path
    saved: SavedResult


def finish(
    run: Run, materials: Materials, state: RunState, settings: Seq2SeqSettings, num_steps: int
) -> Seq2SeqResult:
    """Choose the weights, hold them against the held-out pairs and write the model's folder.

    `metrics.json` comes last; then the checkpoints go.

    Raises:
        StorageError: the disk refused; the same command finishes.
    """
    choice = choose_weights(run, materials, state, settings, num_steps)
    judgement = judge(choice.materials)
    course = Course.from_rows(read_log(run.log_path))
    saved = describe_result(choice, judgement, state, settings, course)
    output = run.folder.parent
    saved = write_model(output, run, choice.materials, judgement, saved, course)
    drop_checkpoints(run, settings)
    return Seq2SeqResult(output, saved)


def describe_result(
    choice: Choice,
    judgement: Judgement,
    state: RunState,
    settings: Seq2SeqSettings,
    course: Course,
) -> SavedResult:
    """What is told of the run for good."""
    materials = choice.materials
    metric = materials.kind.metric
    return SavedResult(
        kind=materials.saved.kind,
        metric=metric,
        metrics=_defined(judgement.metrics),
        signatures=judgement.signatures,
        baseline=_defined(judgement.baseline),
        warnings=(*judgement.warnings, *doubt_best(metric, course.held_out[metric])),
        num_steps=state.step,
        num_epochs=count_epochs(order_pairs(materials.train, settings), state.step),
        best_step=choice.best_step,
        averaged_steps=choice.averaged_steps,
        has_ended_early=state.has_ended_early,
        train=materials.counts["train"],
        dev=materials.counts["dev"],
    )


def write_model(
    output: Path,
    run: Run,
    materials: Materials,
    judgement: Judgement,
    saved: SavedResult,
    course: Course,
) -> SavedResult:
    """Write a model's folder; returns what is saved with the checksums of its files.

    Raises:
        StorageError: the disk refused.
    """
    record = run.read_record()
    assert record is not None, "a run that is finished was begun"
    files = {
        **materials.model.save_pretrained(output),
        **materials.tokenizer.save(output),
        **write_rewriter(output, materials.saved),
    }
    saved = saved.model_copy(update={"files": {name: file.sha256 for name, file in files.items()}})
    facts = Facts(output.resolve().name, record, materials.kind, saved, materials.model.config)
    page = build_page(facts, course, materials.data.dev.pairs, judgement.answers)
    write_report(output / REPORT_FILE, page)
    write_file(output / CARD_FILE, build_card(facts).encode())
    write_sealed_json(output / METRICS_FILE, saved.model_dump(mode="json"))
    return saved


def read_finished(run: Run, wanted: RunRecord, settings: Seq2SeqSettings) -> Seq2SeqResult | None:
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
    saved = read_saved(output)
    check_saved(output, saved)
    if record.settings.get("keep_checkpoints") is False:  # a run that was killed left them
        with run.locked():
            drop_checkpoints(run, settings)
    announce(f"{output} was finished before: nothing is trained")
    return Seq2SeqResult(output, saved)


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


def check_saved(output: Path, saved: SavedResult) -> None:
    """Hold a model's files against their checksums.

    Raises:
        MissingFileError: one is gone.
        DamagedFileError: one isn't what was written.
    """
    cure = f"restore it, or remove {output / METRICS_FILE} to train again"
    for name, sha256 in saved.files.items():
        if not (output / name).exists():
            raise MissingFileError(f"{output / name} is gone; {cure}")
        if record_file(find_member(output, name)).sha256 != sha256:
            raise DamagedFileError(f"{output / name} isn't what was written; {cure}")


def drop_checkpoints(run: Run, settings: Seq2SeqSettings) -> None:
    """Remove the checkpoints of a finished run, unless they are to be kept."""
    if not settings.keep_checkpoints:
        for path in list_checkpoints(run.folder):
            remove_folder(path)


def _defined(values: dict[str, float]) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
