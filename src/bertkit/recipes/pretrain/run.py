"""Pre-train a BERT on shards: build the parts and hand them to the loop."""

import math
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from bertkit._version import __version__
from bertkit.base.errors import InputError, ResumeError
from bertkit.base.files import read_json
from bertkit.base.progress import announce
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.data.order import ExampleOrder
from bertkit.data.shards import Shard, ShardSet
from bertkit.models.bert.config import PRESETS, BertConfig
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.objectives.bert import BertObjective, PreTrainingBatch, count_operations, score
from bertkit.objectives.masking import Masker
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.budget import Pace, count_steps, measure_pace
from bertkit.training.device import choose_device, choose_precision, measure_peak
from bertkit.training.log import read_log
from bertkit.training.loop import Job, Machine, evaluate_batches, fit
from bertkit.training.run import Run, RunRecord, RunState, check_resume, has_same_budget

EVALUATION_BATCH_SIZE = 64
# Held-out examples are planned and masked under a seed of their own, the same for every run.
EVALUATION_SEED = 2**31


@dataclass(frozen=True)
class PretrainResult:
    """What a run came to.

    Attributes:
        checkpoint: the folder of the last checkpoint.
        num_steps: steps of the whole run.
        num_tokens: real tokens seen.
        elapsed_seconds: time spent training, over all its parts.
        metrics: of the last evaluation.
    """

    checkpoint: Path
    num_steps: int
    num_tokens: int
    elapsed_seconds: float
    metrics: dict[str, float]


@dataclass(frozen=True)
class DryRun:
    """What a run would cost.

    Attributes:
        num_parameters: of the model with its heads.
        num_steps: steps of the whole run.
        pace: time and memory of a step.
        share_of_peak: of the machine's rate of multiplying matrices.
        device: where it would compute.
        precision: in which.
    """

    num_parameters: int
    num_steps: int
    pace: Pace
    share_of_peak: float
    device: str
    precision: str


@dataclass(frozen=True)
class Materials:
    """Everything a run is made of, before it begins."""

    shards: ShardSet
    tokenizer: Tokenizer
    config: BertConfig
    machine: Machine


def pretrain(data: Path, output: Path, settings: PretrainSettings) -> PretrainResult:
    """Pre-train, or go on with the run in `output`.

    Args:
        data: what `prepare` wrote.
        output: the run's folder.
        settings: what can be chosen.

    Raises:
        ResumeError: `output` holds a run with other settings or data, or something else.
        InputError: the shards are too small to train on.
        StoppedError: a signal came; the same call goes on.
        NonFiniteError: the loss went to infinity and stayed there.
    """
    run = Run(output)
    record, state = run.read_record(), run.newest_state()
    if run.is_foreign:
        raise ResumeError(f"{output} holds something that isn't a run; choose another --output")
    materials = gather(data, settings)
    wanted = RunRecord(
        settings=settings.model_dump(mode="json"),
        data_fingerprint=materials.shards.fingerprint,
        num_steps=0,
        versions=describe_versions(),
    )
    if record is not None:
        check_resume(record, wanted)
    if state.step:
        announce(f"going on after step {state.step:,} of {output}")
    job = build_job(materials, settings, build_model(materials, settings, run, state))
    if record is not None and has_same_budget(record, wanted):
        num_steps = record.num_steps
    else:
        num_steps = decide_num_steps(job, settings, materials.machine)
    if num_steps < state.step:
        raise ResumeError(
            f"{state.step:,} steps are done, and the new budget is {num_steps:,}; it may only grow"
        )
    run.write_record(wanted.model_copy(update={"num_steps": num_steps}))
    if state.step < num_steps:
        state = fit(
            job, settings, run=run, state=state, num_steps=num_steps, machine=materials.machine
        )
    evaluations = [row for row in read_log(run.log_path) if row["event"] == "eval"]
    return PretrainResult(
        checkpoint=checkpoint_path(output, state.step),
        num_steps=num_steps,
        num_tokens=state.tokens,
        elapsed_seconds=state.elapsed_seconds,
        metrics={
            name: value
            for name, value in evaluations[-1].items()
            if name not in {"event", "step", "tokens"}
        },
    )


def decide_num_steps(
    job: Job[PreTrainingBatch], settings: PretrainSettings, machine: Machine
) -> int:
    """Make the budget into steps, saying so where that takes a while."""
    if settings.steps is None and settings.tokens is None:
        announce("measuring a few steps, to make the minutes into steps")
    return count_steps(job, settings, machine)


def dry_run(data: Path, settings: PretrainSettings) -> DryRun:
    """Measure a few steps and an evaluation, and write nothing.

    Raises:
        InputError: the shards are too small to train on.
    """
    materials = gather(data, settings)
    torch.manual_seed(settings.seed)
    model = BertForPreTraining(materials.config).to(materials.machine.device)
    job = build_job(materials, settings, model)
    pace = measure_pace(job, settings, materials.machine)
    rate = pace.operations_per_step / pace.step_seconds
    return DryRun(
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        num_steps=count_steps(job, settings, materials.machine),
        pace=pace,
        share_of_peak=rate / materials.machine.peak_operations,
        device=str(materials.machine.device),
        precision=materials.machine.precision,
    )


def gather(data: Path, settings: PretrainSettings) -> Materials:
    """Open the data, and decide sizes and machine.

    Raises:
        InputError: the shards are too small to train on.
    """
    shards = ShardSet.open(data)
    tokenizer = Tokenizer.load(data / "tokenizer")
    if not shards.train:
        raise InputError(f"{data} has no training text; prepare a larger corpus")
    device = choose_device(settings.device)
    precision = choose_precision(settings.precision, device)
    machine = Machine(device, precision, measure_peak(device, precision))
    return Materials(shards, tokenizer, build_config(settings, tokenizer), machine)


def build_config(settings: PretrainSettings, tokenizer: Tokenizer) -> BertConfig:
    """The model's sizes: a preset or a file, with the tokenizer's vocabulary.

    Raises:
        SettingsError: the model's name is neither.
    """
    changes = {
        "vocab_size": tokenizer.vocab_size,
        "hidden_dropout_prob": settings.dropout,
        "attention_probs_dropout_prob": settings.dropout,
    }
    if settings.model in PRESETS or not settings.model.endswith(".json"):
        return BertConfig.preset(settings.model, **changes)
    path = Path(settings.model)
    config = BertConfig.from_dict({**read_json(path, limit_bytes=1 << 20), **changes}, path)
    if config.max_position_embeddings < settings.max_length:
        raise InputError(
            f"max_length ({settings.max_length}) is more than the model's"
            f" max_position_embeddings ({config.max_position_embeddings})"
        )
    return config


def build_model(
    materials: Materials, settings: PretrainSettings, run: Run, state: RunState
) -> BertForPreTraining:
    """New weights from the seed, or those of the checkpoint."""
    if state.step:
        model = BertForPreTraining.from_pretrained(checkpoint_path(run.folder, state.step))
    else:
        torch.manual_seed(settings.seed)
        model = BertForPreTraining(materials.config)
    return model.to(materials.machine.device)


def build_job(
    materials: Materials, settings: PretrainSettings, model: BertForPreTraining
) -> Job[PreTrainingBatch]:
    """What the loop is handed."""
    shards, tokenizer, machine = materials.shards, materials.tokenizer, materials.machine
    objective = build_objective(shards.train, shards, tokenizer, settings)
    order = ExampleOrder(
        [shard.num_tokens for shard in shards.train], objective.plan, seed=settings.seed
    )
    held_out = held_out_batches(shards, tokenizer, settings)

    def batches_at(step: int) -> list[PreTrainingBatch]:
        examples = order.examples(step * settings.batch_size, settings.batch_size)
        size = -(-len(examples) // settings.accumulate)
        parts = [examples[start : start + size] for start in range(0, len(examples), size)]
        return [objective.batch(part) for part in parts]

    def evaluate() -> dict[str, float]:
        metrics = evaluate_batches(model, held_out, score, machine.device)
        return {**metrics, "mlm_perplexity": math.exp(min(metrics["mlm_loss"], 100.0))}

    def save_model(folder: Path) -> None:
        model.save_pretrained(folder)
        tokenizer.save(folder)

    return Job(
        model=model,
        batches_at=batches_at,
        score=score,
        evaluate=evaluate,
        count_operations=lambda batch: count_operations(materials.config, batch),
        save_model=save_model,
        shares={"mlm_accuracy": "masked acc.", "nsp_accuracy": "next-sentence acc."},
    )


def build_objective(
    parts: Sequence[Shard], shards: ShardSet, tokenizer: Tokenizer, settings: PretrainSettings
) -> BertObjective:
    """The objective over some of the shards."""
    masker = Masker(
        settings,
        mask_id=tokenizer.mask_id,
        special_ids=tokenizer.special_ids,
        is_continuation=tokenizer.is_continuation,
        token_counts=shards.token_counts,
    )
    return BertObjective(
        shards=parts,
        masker=masker,
        seed=settings.seed,
        max_length=settings.max_length,
        short_rate=settings.short_rate,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
    )


def held_out_batches(
    shards: ShardSet, tokenizer: Tokenizer, settings: PretrainSettings
) -> list[PreTrainingBatch]:
    """The held-out examples of every evaluation, masked the same way every time.

    Raises:
        InputError: the held-out split has no example.
    """
    if not shards.held_out:
        raise InputError(
            "the shards have no held-out text; prepare again with a larger --held-out share"
        )
    objective = build_objective(shards.held_out, shards, tokenizer, settings)
    objective = replace(objective, seed=EVALUATION_SEED)
    order = ExampleOrder(
        [shard.num_tokens for shard in shards.held_out], objective.plan, seed=EVALUATION_SEED
    )
    examples = order.first_epoch()[: settings.eval_sequences]
    if not examples:
        raise InputError(
            "the held-out text is too short to pair; prepare again with a larger --held-out share"
        )
    return [
        objective.batch(examples[start : start + EVALUATION_BATCH_SIZE])
        for start in range(0, len(examples), EVALUATION_BATCH_SIZE)
    ]


def describe_versions() -> dict[str, str]:
    """The programs and the machine's traits on which a run's bits depend."""
    return {
        "bertkit": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": str(torch.get_num_threads()),
        "processor": platform.machine(),
        "cores": str(os.cpu_count()),
    }
