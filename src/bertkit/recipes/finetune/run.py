"""Fine-tune a model: read, train, keep the best epoch, evaluate it, write its folder."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from bertkit.base.errors import ResumeError
from bertkit.base.files import write_json
from bertkit.base.progress import announce
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.data.epochs import EpochOrder
from bertkit.recipes.finetune.examples import ExampleSet, hold_out, read_examples
from bertkit.recipes.finetune.job import Materials, build_job, decode_all, held_out_logits
from bertkit.recipes.finetune.settings import DEFAULT_EPOCHS, FineTuneSettings
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.saved import save_task
from bertkit.tasks.settings import TaskSettings
from bertkit.tasks.table import TASKS
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.allocator import keep_freed_memory
from bertkit.training.device import choose_device, choose_precision, measure_peak
from bertkit.training.job import Machine
from bertkit.training.loop import fit
from bertkit.training.run import Run, RunRecord, RunState, check_resume
from bertkit.training.signals import stop_at_once
from bertkit.training.versions import describe_versions

RUN_FOLDER = "run"
METRICS_FILE = "metrics.json"


@dataclass(frozen=True)
class Sources:
    """What a model is made of.

    Attributes:
        task: a key of `TASKS`.
        model: a model folder, a run, or the id of a model of the Hub.
        train: labelled examples.
        dev: held-out examples; None holds out a share of the training examples.
        revision: a branch, tag or commit of a model of the Hub.
    """

    task: str
    model: str
    train: str
    dev: str | None = None
    revision: str | None = None


@dataclass(frozen=True)
class FineTuneResult:
    """What a run came to.

    Attributes:
        output: the model's folder.
        num_steps: steps of the whole run.
        best_step: the step after which the model was kept.
        evaluation: of that model on the held-out examples.
    """

    output: Path
    num_steps: int
    best_step: int
    evaluation: Evaluation


def finetune(
    sources: Sources, output: Path, task_settings: TaskSettings, settings: FineTuneSettings
) -> FineTuneResult:
    """Fine-tune, or go on with what was begun in `output`.

    Args:
        sources: model, task and data.
        output: the folder of the model; its `run/` has log and checkpoints.
        task_settings: the task's own.
        settings: what can be chosen whatever the task.

    Raises:
        BertkitError: data or model can't be read, or a run was begun there with others.
        StoppedError: a signal came; the same call goes on.
    """
    run = Run(output / RUN_FOLDER)
    with stop_at_once(lambda: "stopped; the same command goes on from the last checkpoint"):
        materials, facts = gather(sources, task_settings, settings)
        with run.locked():
            return _finetune(run, materials, facts, settings)


def gather(
    sources: Sources, task_settings: TaskSettings, settings: FineTuneSettings
) -> tuple[Materials, dict[str, Any]]:
    """Read data and model; also what identifies both, for the run's record."""
    kind = TASKS[sources.task].load()
    train, dev = read_sets(sources, task_settings, settings)
    task = kind.from_examples(task_settings, train.examples)
    checkpoint = open_checkpoint(resolve_model(sources.model, revision=sources.revision))
    device = choose_device(settings.device)
    precision = choose_precision(settings.precision, device)
    if device.type == "cpu":
        keep_freed_memory()
    torch.manual_seed(settings.seed)
    model = kind.model_kind.from_checkpoint(checkpoint, new_heads=True, **task.config_changes)
    tokenizer = Tokenizer.load(checkpoint.folder)
    materials = Materials(
        task=task,
        model=model.to(device),
        tokenizer=tokenizer,
        train=task.encode(train.examples, tokenizer),
        dev_examples=dev.examples,
        dev=task.encode(dev.examples, tokenizer),
        machine=Machine(device, precision, measure_peak(device, precision)),
    )
    return materials, {"train": train.identity, "dev": dev.identity}


def read_sets(
    sources: Sources, task_settings: TaskSettings, settings: FineTuneSettings
) -> tuple[ExampleSet, ExampleSet]:
    """Training and held-out examples, and what was met in their files."""
    kind = TASKS[sources.task].load()
    train = read_examples(kind, sources.train, task_settings, settings, "train")
    if sources.dev is None:
        train, dev = hold_out(train, settings.held_out, settings.seed)
        announce(f"{len(dev.examples):,} of the training examples are held out")
        return train, dev
    return train, read_examples(kind, sources.dev, task_settings, settings, "dev")


def _finetune(
    run: Run, materials: Materials, facts: dict[str, Any], settings: FineTuneSettings
) -> FineTuneResult:
    """Train in a folder that is this process's alone, and write the model beside it."""
    record, state = run.read_record(), run.newest_state()
    steps_per_epoch = EpochOrder(
        len(materials.train), settings.batch_size, settings.seed
    ).steps_per_epoch
    num_steps = max(1, round(steps_per_epoch * (settings.epochs or DEFAULT_EPOCHS)))
    wanted = RunRecord(
        settings=settings.model_dump(mode="json"),
        data_fingerprint=json.dumps(facts, sort_keys=True),
        model=materials.model.config.to_dict(),
        num_steps=num_steps,
        versions=describe_versions(materials.machine.device, materials.machine.precision),
    )
    if record is not None:
        check_resume(record, wanted)
    run.write_record(wanted)
    if state.step:
        announce(f"going on after step {state.step:,} of {run.folder}")
        materials = with_checkpoint(run, state.step, materials)
    paced = settings.model_copy(update={"eval_every": settings.eval_every or steps_per_epoch})
    job = build_job(materials, paced)
    if state.evaluated_step != num_steps:
        state = fit(
            job, paced, run=run, state=state, num_steps=num_steps, machine=materials.machine
        )
    return finish(run, materials, state)


def with_checkpoint(run: Run, step: int, materials: Materials) -> Materials:
    """The same with the weights of a checkpoint.

    Raises:
        ResumeError: the run has no such checkpoint.
    """
    path = checkpoint_path(run.folder, step)
    if not path.exists():
        raise ResumeError(f"{path} is gone; remove {run.folder} to begin again")
    model = type(materials.model).from_pretrained(path)
    return replace(materials, model=model.to(materials.machine.device))


def finish(run: Run, materials: Materials, state: RunState) -> FineTuneResult:
    """Evaluate the best checkpoint and write the model's folder."""
    best_step = state.best_step or state.step
    materials = with_checkpoint(run, best_step, materials)
    logits = held_out_logits(materials)
    task = materials.task.fit_numbers(materials.dev_examples, materials.dev, logits)
    predictions = decode_all(task, materials.dev_examples, materials.dev, logits)
    evaluation = task.evaluate(materials.dev_examples, predictions)
    output = run.folder.parent
    materials.model.save_pretrained(output)
    materials.tokenizer.save(output)
    write_json(output / METRICS_FILE, evaluation.metrics)
    save_task(output, task)
    return FineTuneResult(output, state.step, best_step, evaluation)
