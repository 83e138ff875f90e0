"""Fine-tune a model: read, train, keep the best epoch, evaluate it, write its folder."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from bertkit.base.errors import ResumeError, storage_errors
from bertkit.base.output import list_names
from bertkit.base.progress import announce
from bertkit.data.tables.records import RecordTable
from bertkit.hardware.allocator import prepare_memory
from bertkit.hardware.device import choose_device, choose_precision, measure_peak
from bertkit.recipes.finetune.examples import open_tables
from bertkit.recipes.finetune.features import build_feature_job, remember_states
from bertkit.recipes.finetune.job import FineTuningContext, build_job, load_checkpoint
from bertkit.recipes.finetune.layers import freeze_parameters
from bertkit.recipes.finetune.prepared import Prepared, prepare, read_task
from bertkit.recipes.finetune.pretrained_checkpoint import (
    PretrainedCheckpoint,
    check_pairs,
    choose_kind,
    load_pretrained,
    open_pretrained,
)
from bertkit.recipes.finetune.result import FineTuneResult, finish, read_finished
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.recipes.finetune.steps import count_epoch_steps, decide_steps
from bertkit.tasks.settings import TaskSettings
from bertkit.tasks.table import TASKS
from bertkit.training.job import Job, Machine
from bertkit.training.loop import fit
from bertkit.training.run import (
    Run,
    RunRecord,
    RunState,
    check_resume,
    recognize_source,
    take_over,
)
from bertkit.training.signals import stop_at_once
from bertkit.training.versions import describe_versions

RUN_FOLDER = "run"
SEARCH_FOLDER = "search"
OTHER_KINDS = (
    (RUN_FOLDER, "a single run", "leave out --search and --seeds"),
    (SEARCH_FOLDER, "a search", "give --search or --seeds, as it was begun"),
)
WRITTEN_KEYS = {"architectures", "dtype", "torch_dtype"}  # a checkpoint says them anew


@dataclass(frozen=True)
class Sources:
    """What a model is made of.

    Attributes:
        task: a key of `TASKS`.
        model: a model folder, a run, or the id of a model of the Hub.
        train: labeled examples.
        dev: held-out examples; None holds out a share of the training examples.
        revision: a branch, tag or commit of a model of the Hub.
    """

    task: str
    model: str
    train: str
    dev: str | None = None
    revision: str | None = None


def finetune(
    sources: Sources,
    output: Path,
    task_settings: TaskSettings,
    settings: FineTuneSettings,
    prepared: Prepared | None = None,
) -> FineTuneResult:
    """Fine-tune, or go on with what was begun in `output`; a finished model is only reported.

    Args:
        sources: model, task and data.
        output: the folder of the model; its `run/` has log and checkpoints.
        task_settings: the task's own.
        settings: what can be chosen whatever the task.
        prepared: the data, where it was read before.

    Raises:
        ResumeError: `output` holds a run with other settings or data, or something else, or another
            process trains in it.
        SettingsError: `output` mixes with the data.
        InputError: the data can't be learned from, or doesn't fit the model.
        CheckpointError: the model's config or tensors don't fit.
        MissingFileError, DamagedFileError: data, model or run lack a file or have a damaged one.
        StorageError: writing failed.
        StoppedError: a signal came; the same call goes on.
        NonFiniteError: the loss went to infinity and stayed there.
        BertkitError: the model can't be had, as in `resolve_model` and `open_checkpoint`.
    """
    run = Run(output / RUN_FOLDER)
    inputs = [path for path in (sources.train, sources.dev) if path is not None]
    check = partial(check_output, run=run)
    with stop_at_once(run.describe_stop), run.locked(output, inputs=inputs, check=check):
        tables = open_tables(sources.train, sources.dev, settings)
        wanted = describe_run(sources, tables, task_settings, settings)
        wanted = recognize_source(run.read_record(), wanted, "model")
        finished = read_finished(run, wanted, settings)
        if finished is not None:
            return finished
        materials, facts = gather(sources, task_settings, settings, run, prepared)
        return _finetune(run, materials, wanted.model_copy(update=facts), settings)


def check_output(output: Path, run: Run) -> None:
    """Refuse a folder in which something else lies.

    Args:
        output: the folder.
        run: the run, or the search, that is in it.
    """
    with storage_errors(output, "read"):
        is_file = output.exists() and not output.is_dir()
    others = list_names(output) - {run.folder.name}
    for name, what, way in OTHER_KINDS:
        if name in others:
            raise ResumeError(f"{output} holds {what}; {way}, or choose another --output")
    if is_file or run.is_foreign or (others and run.read_record() is None):
        raise ResumeError(
            f"{output} holds something that `bertkit finetune` didn't begin; choose another"
            " --output"
        )


def describe_run(
    sources: Sources,
    tables: list[RecordTable],
    task_settings: TaskSettings,
    settings: FineTuneSettings,
) -> RunRecord:
    """What decides a run, as far as it is known without the model."""
    model = str(Path(sources.model))  # a shell adds a / to a folder's name or doesn't
    return RunRecord(
        settings={
            "task": sources.task,
            "model": model,
            "revision": sources.revision,
            **task_settings.model_dump(mode="json"),
            **settings.model_dump(mode="json"),
        },
        data_fingerprint=json.dumps([table.identity() for table in tables], sort_keys=True),
        model={},
        num_steps=0,
        versions={},
    )


def gather(
    sources: Sources,
    task_settings: TaskSettings,
    settings: FineTuneSettings,
    run: Run | None = None,
    prepared: Prepared | None = None,
) -> tuple[FineTuningContext, dict[str, Any]]:
    """Read data and model, and say what was met.

    Args:
        sources: model, task and data.
        task_settings: the task's own.
        settings: what can be chosen whatever the task.
        run: one that may have a checkpoint; the model comes from there then.
        prepared: the data, where it was read before.

    Returns:
        What the run is made of, and what its record says of that.
    """
    if prepared is None:
        tables = open_tables(sources.train, sources.dev, settings)
        task, data = read_task(TASKS[sources.task].load(), tables, task_settings, settings)
    else:
        task, data = prepared.task, prepared.data
    checkpoint = None if run is None else run.newest_checkpoint()
    if checkpoint is not None:
        parent = open_pretrained(checkpoint, None, task, settings)
    else:
        parent = open_pretrained(sources.model, sources.revision, task, settings)
    if prepared is None:
        prepared = prepare(task, data, parent.tokenizer)
    materials = assemble(prepared, parent, settings)
    machine = materials.machine
    return materials, {
        "model": {
            name: value
            for name, value in materials.model.config.to_dict().items()
            if name not in WRITTEN_KEYS
        },
        "versions": describe_versions(machine.device, machine.precision),
        "source": {} if checkpoint is not None else parent.facts,
    }


def assemble(
    prepared: Prepared, parent: PretrainedCheckpoint, settings: FineTuneSettings
) -> FineTuningContext:
    """Load the model."""
    examples = chain(prepared.train, prepared.dev)
    sequences = (sequence for one in examples for sequence in one.sequences)
    check_pairs(parent, any(sequence.segments[-1] for sequence in sequences))
    device = choose_device(settings.device)
    precision = choose_precision(settings.precision, device)
    prepare_memory(device)
    torch.manual_seed(settings.seed)
    model = load_pretrained(parent, choose_kind(prepared.task, settings))
    frozen = settings.freeze if settings.features is None else "encoder"
    freeze_parameters(model, frozen, model.config.num_hidden_layers)
    return FineTuningContext(
        task=prepared.task,
        model=model.to(device),
        tokenizer=prepared.tokenizer,
        data=prepared.data,
        train=prepared.train,
        dev=prepared.dev,
        counts=prepared.counts,
        machine=Machine(device, precision, measure_peak(device, precision)),
    )


def _finetune(
    run: Run, materials: FineTuningContext, wanted: RunRecord, settings: FineTuneSettings
) -> FineTuneResult:
    """Train in a folder that is this process's alone, and write the model beside it."""
    record, state = run.read_record(), run.newest_state()
    num_steps = decide_steps(settings, count_epoch_steps(len(materials.train), settings))
    wanted = wanted.model_copy(update={"num_steps": num_steps})
    if record is not None:
        check_resume(record, wanted)
        wanted = take_over(record, wanted)
    run.write_record(wanted)
    if state.step:
        announce(f"going on after step {state.step:,} of {run.folder}")
        materials = load_checkpoint(run, state.step, materials)
    if not state.is_done(num_steps):
        state = train(run, materials, state, num_steps, settings)
    return finish(run, materials, state, settings)


def train(
    run: Run,
    materials: FineTuningContext,
    state: RunState,
    num_steps: int,
    settings: FineTuneSettings,
) -> RunState:
    """All steps that are still to be done, with an evaluation after each epoch."""
    interval = settings.eval_every or count_epoch_steps(len(materials.train), settings)
    paced = settings.model_copy(update={"eval_every": interval})
    with prepare_job(run, materials, paced) as job:
        return fit(
            job,
            paced,
            run=run,
            state=state,
            num_steps=num_steps,
            machine=materials.machine,
        )


@contextmanager
def prepare_job(
    run: Run, materials: FineTuningContext, settings: FineTuneSettings
) -> Iterator[Job[Any]]:
    """What the loop is handed, as long as it needs it."""
    job = build_job(materials, settings)
    if settings.features is None:
        yield job
    else:
        with remember_states(run.folder, materials, settings) as states:
            yield build_feature_job(job, materials, states)
