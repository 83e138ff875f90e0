"""The end of a run: evaluate the best checkpoint, and write the model's folder with its report."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import DamagedFileError, MissingFileError, pluralize
from bertkit.base.json_files import write_json
from bertkit.base.progress import announce
from bertkit.checkpoints.sentence_transformers import write_sentence_model
from bertkit.checkpoints.torch_tensors import lazy_tensors
from bertkit.models.bert.feature_head import describe_modules
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.nn.low_rank import merge_low_rank
from bertkit.recipes.finetune.card import PICTURE_FILE, FineTuningFacts, build_card
from bertkit.recipes.finetune.changes import HeldOutChanges
from bertkit.recipes.finetune.comparison import SeedComparison
from bertkit.recipes.finetune.evaluation import FinalEvaluation
from bertkit.recipes.finetune.job import FineTuningJob
from bertkit.recipes.finetune.row_files import read_rows
from bertkit.recipes.finetune.saved import CrossValidated, SavedFineTuning
from bertkit.recipes.finetune.verdict import Verdict, judge_runs, number_groups
from bertkit.recipes.model_card import tabulate_counts, write_descriptions
from bertkit.reports.figures.picture import write_picture
from bertkit.reports.report import Charts, Report, Section, Table
from bertkit.reports.text import Cell, is_share
from bertkit.tasks.ranking import RankingScoring
from bertkit.tasks.saved import TEMPERATURE, list_scorer_files, save_task
from bertkit.tasks.sections import CHANCE, build_sections, draw_confusion, show_name, state_metric
from bertkit.tasks.task import AnyTask, TaskExample
from bertkit.training.history import TrainingHistory
from bertkit.training.log import read_log
from bertkit.training.record import RunState
from bertkit.training.run import Run
from bertkit.training.sections import LOSS, Across, Curve, draw_curves

MAX_LABELS = 200  # in a table


def build_page(facts: FineTuningFacts, history: TrainingHistory) -> Report:
    """Build the report."""
    final, saved, comparison = facts.final, facts.saved, facts.comparison
    curves = choose_curves(final.task.metric)
    charts = draw_curves(history, curves, epochs(saved.num_epoch_steps))
    sections: list[Section] = [
        *([] if comparison is None else [comparison.draw()]),
        *([] if facts.changes is None else facts.changes.draw()),
        *build_sections(final.evaluation, final.before),
        *([] if saved.num_steps == 0 else [Charts(charts, title="Training curves")]),
        *tabulate_data(saved),
        *facts.list_settings(),
    ]
    where = f"{saved.dev.num_examples:,} held-out rows"
    metric, found = final.task.metric, final.evaluation
    title = state_metric(metric, where, found.metrics, found.intervals, final.baseline)
    title = title if saved.verdict is None else saved.verdict.describe()
    return Report(title, summarize(facts), sections, name=facts.name)


def summarize(facts: FineTuningFacts) -> str:
    """Say in two sentences what was trained, and for how long."""
    saved = facts.saved
    ending = ", and ended early" if saved.has_ended_early else ""
    how = "The last layer was solved on the frozen encoder."
    if saved.num_steps:
        steps = pluralize(saved.num_steps, "step")
        best = f"the best epoch was {saved.best_epoch:.4g}"
        how = f"It trained for {steps}{ending}; {best}."
        if saved.best_step == 0:
            start = "linear classifier" if facts.final.task.name == "classify" else "linear layer"
            start = start if saved.verdict is None else "model"
            how = (
                f"Training for {steps} didn't improve on the initial {start}, which is the model"
                " saved."
            )
    chance = f" {CHANCE}" if facts.final.baseline else ""
    if saved.cross_validated is not None:
        how = f"{how} {saved.cross_validated.describe()}."
    return f"{facts.initial_model}, fine-tuned for the task {facts.final.task.name}. {how}{chance}"


def choose_curves(*metrics: str) -> tuple[Curve, ...]:
    """Return the curves of the loss and of metrics."""
    shown = (
        Curve(name, show_name(name), "held-out", is_percent=share, starts_at_zero=share)
        for name, share in ((name, is_share(name)) for name in metrics)
    )
    return replace(LOSS, starts_at_zero=True), *shown


def epochs(num_steps: int) -> Across:
    """Return an x axis in epochs, for `num_steps` steps an epoch."""
    return Across("step", "epoch", num_steps)


def tabulate_data(saved: SavedFineTuning) -> list[Table]:
    """Tabulate the counts of the data and of each label."""
    train, dev = saved.train, saved.dev
    tables = [tabulate_counts(train, dev)]
    if train.labels:
        labels = list({**train.labels, **dev.labels})  # the most frequent first
        rows: list[list[Cell]] = [
            [label, train.labels.get(label, 0), dev.labels.get(label, 0)]
            for label in labels[:MAX_LABELS]
        ]
        num_more = len(labels) - MAX_LABELS
        note = f"There are {num_more:,} rarer ones, all of them in config.json."
        columns = ["Label", "Training", "Held-out"]
        tables.append(Table(columns, rows, title="Labels", note=note if num_more > 0 else ""))
    return tables


ADAPTER_FOLDER = "adapter"  # in a model that was trained with LoRA: only what was trained


@dataclass(frozen=True)
class FineTuneResult:
    """The result of a run."""

    output: Path
    saved: SavedFineTuning
    comparison: SeedComparison | None = None  # with the runs of other seeds
    examples: Sequence[TaskExample] = ()  # of the training rows, in their order


def write_model(
    output: Path,
    run: Run,
    job: FineTuningJob,
    final: FinalEvaluation,
    saved: SavedFineTuning,
    comparison: SeedComparison | None = None,
) -> SavedFineTuning:
    """Write the model's folder; return what `metrics.json` says, which is written last.

    The job has the best weights, which get the temperature that was fitted.
    """
    record = run.read_record()
    assert record is not None
    changes = find_changes(run, final, saved.verdict)
    facts = FineTuningFacts(output.resolve().name, record, saved, final, comparison, changes)
    task = move_temperature(final.task, job.model)
    files: dict[str, FileRecord] = {}
    if job.settings.lora is not None:
        written = write_files(output / ADAPTER_FOLDER, job, task)
        files = {f"{ADAPTER_FOLDER}/{name}": file for name, file in written.items()}
        merge_low_rank(job.model)
        job.model.adapter_origin = None
    files |= write_files(output, job, task)
    saved = saved.model_copy(update={"files": {name: file.sha256 for name, file in files.items()}})
    matrix = draw_confusion(final.evaluation)
    if facts.has_picture and matrix is not None:
        write_picture(output / PICTURE_FILE, matrix)
    history = TrainingHistory.from_rows(read_log(run.log_path))
    write_descriptions(output, build_page(facts, history), build_card(facts))
    found = list_scorer_files(final.task, job.data.dev.examples, final.predictions)
    for name, content in found.items():
        write_json(output / name, content)
    saved.write(output)
    return saved


def move_temperature(task: AnyTask, model: FineTunedBert) -> AnyTask:
    """Divide the head's last layer by the temperature; return the task without it.

    Other programs then compute calibrated logits, too.
    """
    if task.temperature == 1.0:
        return task
    with torch.no_grad():
        for parameter in model.last_linear.parameters():
            parameter.div_(task.temperature)
    kept = {name: value for name, value in task.numbers.items() if name != TEMPERATURE}
    return replace(task, numbers=kept)


def write_files(folder: Path, job: FineTuningJob, task: AnyTask) -> dict[str, FileRecord]:
    """Write the files that a model is opened from; return their records by name."""
    files = job.model.save_pretrained(folder)
    modules = describe_modules(
        job.model.config,
        lazy_tensors(dict(job.model.named_parameters())),
        task.settings.max_length,
        reads_pairs=task.reads_pairs,
    )
    if modules is not None:  # by which sentence-transformers computes the logits
        files |= write_sentence_model(folder, modules)
    return {**files, **job.save_tokenizer(folder), **save_task(folder, task)}


def find_changes(
    run: Run, final: FinalEvaluation, verdict: Verdict | None
) -> HeldOutChanges | None:
    """Return what training changed, if there is a verdict on it."""
    if verdict is None or final.compared is None:
        return None
    return HeldOutChanges(verdict, final.compared, read_rows(run)[0].before)


def judge_held_out(
    job: FineTuningJob, final: FinalEvaluation, runs: Sequence[Run]
) -> Verdict | None:
    """Return the verdict on a run, or on several seeds; None if the task isn't compared.

    Where there can't be one although it is, that is announced: the trained model is worth more.
    """
    if final.compared is None:
        return None
    if job.watched is not None and job.watched.metric != job.task.metric:
        announce("no verdict: it chooses steps by its own metric, not by --metric loss")
        return None
    if not math.isfinite(final.compared.metrics[job.task.metric]):
        announce(
            f"no verdict: {show_name(job.task.metric)} isn't defined on {describe_rows(final)}"
        )
        return None
    try:
        rows = [read_rows(run) for run in runs]
    except (DamagedFileError, MissingFileError) as error:
        announce(f"no verdict: {error}")
        return None
    examples = final.compared.examples
    groups, num_divided = number_groups(
        [each.group for each in examples], [each.positives[:1] for each in examples]
    )
    return judge_runs(
        job.task.metric,
        rows,
        groups,
        may_be_first=job.has_start,
        num_divided=num_divided,
    )


def describe_rows(final: FinalEvaluation) -> str:
    """Describe held-out rows on which the metric isn't defined, and what would help."""
    if not isinstance(final.compared, RankingScoring):
        return "the held-out rows: they are too few or too similar"
    return (
        "the held-out queries: none has a passage that is more relevant than another; give --dev"
        " with better and worse passages of each query, or try --negatives mine"
    )


def build_record(
    job: FineTuningJob, final: FinalEvaluation, state: RunState, run: Run
) -> SavedFineTuning:
    """Build the content of `metrics.json`."""
    evaluation, best_step = final.evaluation, state.model_step
    return SavedFineTuning(
        task=final.task.name,
        metric=final.task.metric,
        metrics=dict(evaluation.metrics),
        intervals=dict(evaluation.intervals),
        calibration=evaluation.calibration,
        cross_validated=CrossValidated.read(run.folder),
        baseline=final.baseline,
        verdict=judge_held_out(job, final, [run]),
        warnings=evaluation.warnings,
        num_steps=state.step,
        best_step=best_step,
        best_epoch=best_step / job.num_epoch_steps,
        steps_per_epoch=job.num_epoch_steps,
        has_ended_early=state.has_ended_early,
        train=job.data.train.counts,
        dev=job.data.dev.counts,
    )
