"""The parts of a pre-training run: data, model, machine, and the job for the training loop."""

import math
from dataclasses import dataclass
from pathlib import Path

import torch

from bertkit.base.checksums import FileRecord
from bertkit.base.errors import InputError
from bertkit.base.files import read_json, write_json
from bertkit.checkpoints.file_names import CONFIG_FILE
from bertkit.checkpoints.run_folder import checkpoint_path
from bertkit.data.order import ExampleOrder
from bertkit.data.shards import ShardSet
from bertkit.models.bert.config import PRESETS, BertConfig
from bertkit.models.bert.heads import WordScoringBert
from bertkit.models.bert.neighbor_heads import attend_to_neighbors
from bertkit.objectives.batch_tensors import batch_tensors
from bertkit.objectives.objective import WordBatch
from bertkit.objectives.table import OBJECTIVES
from bertkit.recipes.pretrain.evaluation import (
    build_objective,
    evaluate_words,
    held_out_batches,
)
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.recipes.pretrain.source import InitialCheckpoint, load_source, open_source
from bertkit.tokenization.folder import read_max_length
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Job, Machine
from bertkit.training.run import Run, RunState, keep_precision

# With neighbor heads, random weights have a standard deviation of this / √hidden_size.
SCALED_DEVIATION = 0.7


@dataclass(frozen=True)
class PretrainingContext:
    """The data, sizes and device of a run, before it begins.

    Attributes:
        shards: the data.
        tokenizer: the data's tokenizer.
        config: the model's config.
        machine: the device to compute on.
        trained_length: maximum sequence length that the positions were trained on, before or in
            this run; None if the initial model doesn't say.
        source: the checkpoint to start from; None if weights are random, or the run resumes.
    """

    shards: ShardSet
    tokenizer: Tokenizer
    config: BertConfig
    machine: Machine
    trained_length: int | None
    source: InitialCheckpoint | None = None


def gather(data: Path, settings: PretrainSettings, run: Run | None = None) -> PretrainingContext:
    """Open the data, and determine the model's config and the device.

    Args:
        data: the shards' folder.
        settings: settings of the run.
        run: the run; if it already has a checkpoint, the source isn't needed. It goes on in its
            precision.
    """
    shards = ShardSet.open(data)
    tokenizer = shards.load_tokenizer()
    if not shards.train:
        raise InputError(f"{data} has no training text; prepare a larger corpus")
    machine = Machine.choose(keep_precision(settings, run))
    source, model_max_length = None, None
    if settings.start_from is None:
        config = build_config(settings, tokenizer)
    elif run is not None and (record := run.read_record()) and (last := run.newest_checkpoint()):
        config = BertConfig.from_dict(record.model, run.folder)
        model_max_length = read_max_length(last)
    else:
        source = open_source(settings.start_from, settings, tokenizer)
        config = check_config(source.config, settings, source.checkpoint.folder)
        model_max_length = read_max_length(source.checkpoint.folder)
    trained_length = find_trained_length(settings, model_max_length, config)
    return PretrainingContext(shards, tokenizer, config, machine, trained_length, source)


def find_trained_length(
    settings: PretrainSettings, model_max_length: int | None, config: BertConfig
) -> int | None:
    """Return the maximum length the positions are trained on after this run; None if unknown.

    Args:
        settings: settings of the run.
        model_max_length: maximum length of the initial model; None if it doesn't say.
        config: the model's config.
    """
    if settings.start_from is None or OBJECTIVES[settings.objective].is_causal:
        return settings.max_length
    if model_max_length is None:
        return None
    return min(max(model_max_length, settings.max_length), config.max_position_embeddings)


def build_config(settings: PretrainSettings, tokenizer: Tokenizer) -> BertConfig:
    """Build a new model's config from a preset or a file, with the tokenizer's vocabulary size."""
    assert settings.model is not None, "the settings have a model or a source"
    is_causal = OBJECTIVES[settings.objective].is_causal
    changes = {
        "vocab_size": tokenizer.vocab_size,
        **settings.dropout_rates,
        **({"is_decoder": True} if is_causal else {}),
    }
    if settings.initializer_range is not None:
        changes["initializer_range"] = settings.initializer_range
    if settings.model in PRESETS or not settings.model.endswith(".json"):
        if settings.initialization == "neighbors" and settings.model in PRESETS:
            scaled = SCALED_DEVIATION / math.sqrt(PRESETS[settings.model]["hidden_size"])
            changes = {"initializer_range": scaled, **changes}
        return BertConfig.preset(settings.model, **changes)
    path = Path(settings.model)
    content = read_json(path, limit_bytes=1 << 20)
    if not isinstance(content, dict):
        raise InputError(f"{path} holds a {type(content).__name__}; expected a config's object")
    config = BertConfig.from_dict({**content, **changes}, path)
    if config.is_decoder and not is_causal:
        raise InputError(
            f"{path} says is_decoder, left to right, and the objective {settings.objective} is"
            f" bidirectional; remove it there, or set objective to causal"
        )
    return check_config(config, settings, path)


def check_config(config: BertConfig, settings: PretrainSettings, source: Path) -> BertConfig:
    """Return the config; raise if it doesn't fit the objective or the requested length."""
    num_segments = OBJECTIVES[settings.objective].num_segments
    if config.type_vocab_size < num_segments:
        raise InputError(
            f"{source}: type_vocab_size must be at least {num_segments}, for sentences A and B,"
            f" and is {config.type_vocab_size}"
        )
    if config.max_position_embeddings < settings.max_length:
        raise InputError(
            f"max_length ({settings.max_length}) is more than the model's"
            f" max_position_embeddings ({config.max_position_embeddings})"
        )
    return config


def build_model(
    context: PretrainingContext, settings: PretrainSettings, run: Run, state: RunState
) -> WordScoringBert:
    """Build the model with the weights of the run's checkpoint, or the initial ones."""
    if not state.step:
        return begin_model(context, settings)
    kind = OBJECTIVES[settings.objective].model_kind
    model = kind.from_pretrained(checkpoint_path(run.folder, state.step))
    return model.to(context.machine.device)


def begin_model(context: PretrainingContext, settings: PretrainSettings) -> WordScoringBert:
    """Build the model with the weights of the source, or random ones from the seed."""
    if context.source is None:
        model = build_new_model(context.config, settings)
    else:
        torch.manual_seed(settings.seed)
        model = load_source(context.source, settings, context.shards.token_counts)
    return model.to(context.machine.device)


def build_new_model(config: BertConfig, settings: PretrainSettings) -> WordScoringBert:
    """Build a model with initial weights from the seed, on the CPU."""
    torch.manual_seed(settings.seed)
    model = OBJECTIVES[settings.objective].model_kind(config)
    if settings.initialization == "neighbors":
        attend_to_neighbors(model.encoder)
    return model


def build_job(
    context: PretrainingContext, settings: PretrainSettings, model: WordScoringBert
) -> Job[WordBatch]:
    """Build the job for the training loop."""
    shards, tokenizer, machine = context.shards, context.tokenizer, context.machine
    objective = build_objective(shards.train, shards, tokenizer, settings)
    order = ExampleOrder(
        [shard.num_tokens for shard in shards.train], objective.plan, seed=settings.seed
    )
    held_out = held_out_batches(shards, tokenizer, settings)
    max_length = context.trained_length

    def batches_at(step: int) -> list[WordBatch]:
        examples = order.examples(step * settings.batch_size, settings.batch_size)
        size = -(-len(examples) // settings.accumulate)
        parts = [examples[start : start + size] for start in range(0, len(examples), size)]
        return [objective.batch(part) for part in parts]

    def evaluate() -> dict[str, float]:
        return evaluate_words(model, held_out, objective, tokenizer, machine.device)

    def save_model(folder: Path) -> dict[str, FileRecord]:
        return {**model.save_pretrained(folder), **tokenizer.save(folder, max_length=max_length)}

    def save_architecture(folder: Path) -> dict[str, FileRecord]:
        config = write_json(folder / CONFIG_FILE, model.config.to_dict())
        return {CONFIG_FILE: config, **tokenizer.save(folder, max_length=max_length)}

    return Job(
        model=model,
        batches_at=batches_at,
        score=objective.score,
        evaluate=evaluate,
        count_operations=lambda batch: model.count_operations(batch.packed, len(batch.labels)),
        save_model=save_model,
        save_architecture=save_architecture,
        batch_tensors=batch_tensors,
        shares=objective.shares,
        muon_learning_rate=settings.muon_learning_rate if settings.optimizer == "muon" else None,
        example_names="examples epoch/shard/index",
        can_replay=True,
    )
