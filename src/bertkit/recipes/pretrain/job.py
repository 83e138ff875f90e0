"""The parts of a pre-training run: data, model, machine, and the job that the loop is handed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import torch

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import InputError
from bertkit.base.files import read_json, write_json
from bertkit.checkpoints.huggingface import CONFIG_FILE
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.data.order import ExampleOrder
from bertkit.data.shards import Shard, ShardSet
from bertkit.models.bert.config import PRESETS, BertConfig
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.objectives.batch_tensors import batch_tensors
from bertkit.objectives.bert import BertObjective, PreTrainingBatch, count_operations, score
from bertkit.objectives.masking import Masker
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.allocator import keep_freed_memory
from bertkit.training.device import choose_device, choose_precision, measure_peak
from bertkit.training.job import Job, Machine
from bertkit.training.run import Run, RunState
from bertkit.training.step import evaluate_batches

EVALUATION_BATCH_SIZE = 64
# Held-out examples are planned and masked under a seed of their own, the same for every run.
EVALUATION_SEED = 2**31
NUM_SEGMENTS = 2


@dataclass(frozen=True)
class Materials:
    """Everything a run is made of, before it begins."""

    shards: ShardSet
    tokenizer: Tokenizer
    config: BertConfig
    machine: Machine


def gather(data: Path, settings: PretrainSettings) -> Materials:
    """Open the data, and decide sizes and machine.

    Raises:
        InputError: the shards are too small to train on.
    """
    shards = ShardSet.open(data)
    tokenizer = shards.load_tokenizer()
    if not shards.train:
        raise InputError(f"{data} has no training text; prepare a larger corpus")
    device = choose_device(settings.device)
    precision = choose_precision(settings.precision, device)
    if device.type == "cpu":
        keep_freed_memory()
    machine = Machine(device, precision, measure_peak(device, precision))
    return Materials(shards, tokenizer, build_config(settings, tokenizer), machine)


def build_config(settings: PretrainSettings, tokenizer: Tokenizer) -> BertConfig:
    """The model's sizes: a preset or a file, with the tokenizer's vocabulary.

    Raises:
        SettingsError: the model's name is neither.
        InputError: the file's model can't take pairs of this length.
    """
    changes = {
        "vocab_size": tokenizer.vocab_size,
        "hidden_dropout_prob": settings.dropout,
        "attention_probs_dropout_prob": settings.dropout,
    }
    if settings.model in PRESETS or not settings.model.endswith(".json"):
        return BertConfig.preset(settings.model, **changes)
    path = Path(settings.model)
    content = read_json(path, limit_bytes=1 << 20)
    if not isinstance(content, dict):
        raise InputError(f"{path} holds a {type(content).__name__}; expected a config's object")
    config = BertConfig.from_dict({**content, **changes}, path)
    if config.type_vocab_size < NUM_SEGMENTS:
        raise InputError(
            f"{path}: type_vocab_size must be at least {NUM_SEGMENTS}, for sentences A and B,"
            f" and is {config.type_vocab_size}"
        )
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

    def save_model(folder: Path) -> dict[str, FileRecord]:
        return {**model.save_pretrained(folder), **tokenizer.save(folder)}

    def save_architecture(folder: Path) -> dict[str, FileRecord]:
        config = write_json(folder / CONFIG_FILE, model.config.to_dict())
        return {CONFIG_FILE: config, **tokenizer.save(folder)}

    return Job(
        model=model,
        batches_at=batches_at,
        score=score,
        evaluate=evaluate,
        count_operations=lambda batch: count_operations(materials.config, batch),
        save_model=save_model,
        save_architecture=save_architecture,
        batch_tensors=batch_tensors,
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
    examples = list(islice(order.first_epoch(), settings.eval_sequences))
    batches = [
        objective.batch(examples[start : start + EVALUATION_BATCH_SIZE])
        for start in range(0, len(examples), EVALUATION_BATCH_SIZE)
    ]
    if not any(batch.target_counts["mlm"] for batch in batches):
        raise InputError(
            "the held-out text has no known word to mask; was it prepared with the right tokenizer?"
        )
    return batches
