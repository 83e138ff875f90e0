"""Fine-tune a model: read, train, keep the best epoch, evaluate it, write its folder."""

import json
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from bertkit.base.errors import ResumeError
from bertkit.base.output import list_names
from bertkit.checkpoints.run_folder import RUN_FOLDER
from bertkit.data.tables.records import RecordTable
from bertkit.data.tables.rows import Table
from bertkit.models.open_model import OpenModel
from bertkit.recipes.finetune.examples import open_tables
from bertkit.recipes.finetune.frozen import FeatureJob, remember_states, solve_head
from bertkit.recipes.finetune.job import (
    FineTuningContext,
    FineTuningJob,
    count_epoch_steps,
    decide_steps,
    freeze_parameters,
)
from bertkit.recipes.finetune.prepared import (
    SENTENCE_ENCODER,
    Prepared,
    check_pairs,
    choose_kind,
    identify,
    load_pretrained,
    open_pretrained,
    prepare,
    read_task,
)
from bertkit.recipes.finetune.result import FineTuneResult, SavedFineTuning, finish, load_result
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.settings import TaskSettings
from bertkit.tasks.table import TASKS
from bertkit.training.job import Machine
from bertkit.training.lifecycle import (
    complete_record,
    do_in_first_rank,
    finish_run,
    load_checkpoint,
    open_run,
    read_finished,
    start_or_resume,
    train_to_end,
)
from bertkit.training.ranks import refuse_ranks
from bertkit.training.run import Run, RunRecord, keep_precision, recognize_source

SEARCH_FOLDER = "search"
OTHER_KINDS = (
    (RUN_FOLDER, "a single run", "leave out --search and --seeds"),
    (SEARCH_FOLDER, "a search", "give --search or --seeds, as when it was started"),
)


@dataclass(frozen=True)
class Sources:
    """The model to start from and the data."""

    task: str
    model: str
    train: Table
    dev: Table | None = None  # None holds out a share of the training examples
    revision: str | None = None


def finetune(
    sources: Sources,
    output: Path,
    task_settings: TaskSettings,
    settings: FineTuneSettings,
    prepared: Prepared | None = None,
) -> FineTuneResult:
    """Fine-tune, or resume the run in `output`; a finished model is only reported.

    `prepared` is the data, if it was read before. A `ResumeError` says that `output` holds
    something else, such as a run with other settings or data, or that another process trains in it;
    a `StoppedError` that a signal came, and that the same call resumes; a `NonFiniteError` that the
    loss became infinite and stayed so.
    """
    run = Run(output / RUN_FOLDER)
    inputs = [each for each in (sources.train, sources.dev) if isinstance(each, str | Path)]
    check = partial(check_kind, kind=RUN_FOLDER)
    with open_run(run, output, inputs=inputs, check=check):
        tables = open_tables(sources.train, sources.dev, settings)
        wanted = describe_run(sources, tables, task_settings, settings)
        wanted = recognize_source(run.read_record(), wanted, "model")
        if (saved := read_finished(run, wanted, SavedFineTuning)) is not None:
            return load_result(output, saved)
        if settings.features == "bilstm":
            refuse_ranks("--features bilstm")
        context, source = prepare_context(sources, task_settings, settings, run, prepared)
        wanted = complete_record(wanted, context.model.config.to_dict(), context.machine, source)
        return _finetune(run, context, wanted, settings)


def check_kind(output: Path, kind: str) -> None:
    """Raise `ResumeError` if a folder holds a search instead of a single run, or vice versa."""
    others = list_names(output) - {kind}
    for name, what, way in OTHER_KINDS:
        if name in others:
            raise ResumeError(f"{output} holds {what}; {way}, or choose another --output")


def describe_run(
    sources: Sources,
    tables: list[RecordTable],
    task_settings: TaskSettings,
    settings: FineTuneSettings,
) -> RunRecord:
    """Return the run's record, without what depends on the model."""
    model = str(Path(sources.model))  # a shell adds a / to a folder's name or doesn't
    return RunRecord(
        settings={
            "task": sources.task,
            "model": model,
            "revision": sources.revision,
            **task_settings.model_dump(mode="json"),
            **settings.model_dump(mode="json"),
            **settings.undecided,
        },
        data_fingerprint=json.dumps([table.identity() for table in tables], sort_keys=True),
        model={},
        num_steps=0,
        versions={},
    )


def prepare_context(
    sources: Sources,
    task_settings: TaskSettings,
    settings: FineTuneSettings,
    run: Run | None = None,
    prepared: Prepared | None = None,
) -> tuple[FineTuningContext, dict[str, Any]]:
    """Read data and model, the run's if it has a checkpoint; return also its source's identity."""
    if prepared is None:
        tables = open_tables(sources.train, sources.dev, settings)
        task, data = read_task(TASKS[sources.task].load(), tables, task_settings, settings)
    else:
        task, data = prepared.task, prepared.data
    checkpoint = None if run is None else run.newest_checkpoint()
    if run is not None and checkpoint is not None:
        pretrained = open_pretrained(checkpoint, None, task, settings)
        record = run.read_record()
        source = {} if record is None else record.source
    else:
        pretrained = open_pretrained(sources.model, sources.revision, task, settings)
        source = identify(pretrained)
    if prepared is None:
        prepared = prepare(task, data, pretrained.tokenizer)
    context = build_context(
        prepared,
        pretrained,
        keep_precision(settings, run),
        is_sentence_encoder=bool(source.get(SENTENCE_ENCODER)),
    )
    return context, {} if checkpoint is not None else source


def build_context(
    prepared: Prepared,
    pretrained: OpenModel,
    settings: FineTuneSettings,
    *,
    is_sentence_encoder: bool = False,
) -> FineTuningContext:
    """Load the model."""
    examples = chain(prepared.train, prepared.dev)
    sequences = (sequence for one in examples for sequence in one.sequences)
    check_pairs(pretrained, any(sequence.segments[-1] for sequence in sequences))
    machine = Machine.choose(settings)
    torch.manual_seed(settings.seed)
    model = load_pretrained(pretrained, choose_kind(prepared.task, pretrained))
    frozen = settings.freeze if settings.features is None else "encoder"
    freeze_parameters(model, frozen, model.config.num_hidden_layers)
    return FineTuningContext(
        **vars(prepared),
        model=model.to(machine.device),
        machine=machine,
        has_solved_head=settings.features == "linear"
        or (settings.features is None and is_sentence_encoder and prepared.task.reads_texts),
    )


def _finetune(
    run: Run, context: FineTuningContext, wanted: RunRecord, settings: FineTuneSettings
) -> FineTuneResult:
    """Train in a folder whose lock this process holds, and write the model beside the run."""
    record, state = start_or_resume(run, wanted)
    interval = count_epoch_steps(len(context.train), settings)
    if context.has_solved_head:
        settings = settings.for_solved_head()
    num_steps = record.num_steps or decide_steps(
        settings, interval, has_solved_head=context.has_solved_head
    )
    record = run.write_record(record.model_copy(update={"num_steps": num_steps}))
    if state.step:
        context = load_checkpoint(run, state.step, context)
    if context.has_solved_head and state.evaluated_step is None:
        do_in_first_rank(lambda: solve_head(run.folder, context, settings.seed))
    scheduled = settings.model_copy(update={"eval_every": settings.eval_every or interval})
    with ExitStack() as cache:
        if settings.features == "bilstm":
            states = cache.enter_context(remember_states(run.folder, context))
            job: FineTuningJob = FeatureJob(context, scheduled, states)
        else:
            job = FineTuningJob(context, scheduled)
        state = train_to_end(run, job, scheduled, record, state, context.machine)
    output = run.folder.parent
    return finish_run(
        lambda: finish(run, context, state, settings),
        lambda: load_result(output, SavedFineTuning.read(output)),
    )
