"""Prepares labeled data: read, describe and encode it once, for one run or for many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertkit.base.errors import CheckpointError, InputError, SettingsError
from bertkit.base.progress import announce
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.formats import identify_checkpoint, name_model, open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.names import find_part, list_heads
from bertkit.checkpoints.sentence_modules import Pooling
from bertkit.checkpoints.sentence_transformers import is_sentence_transformers, read_sentence_model
from bertkit.data.tables.records import RecordTable
from bertkit.inference.loading import load_tokenizer
from bertkit.models.bert.architectures import find_architecture
from bertkit.models.bert.config import (
    FEATURE_HEAD,
    BertConfig,
    check_names,
    without_replaced_labels,
)
from bertkit.models.bert.feature_based import BertFeatureBased, FeatureHead
from bertkit.models.bert.fine_tuning import BertForMultipleChoice, FineTunedBert
from bertkit.recipes.finetune.examples import (
    FineTuningData,
    SetCounts,
    check_labels,
    count_set,
    describe_rows,
    describe_set,
    encode,
    list_warnings,
    read_data,
)
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.reports.text import make_legible
from bertkit.tasks.batch import Encoded
from bertkit.tasks.columns import describe_look_alikes
from bertkit.tasks.settings import POOLINGS, PoolingName, TaskSettings
from bertkit.tasks.task import Task
from bertkit.tokenization.tokenizer import Tokenizer

SENTENCE_ENCODER = "is_sentence_encoder"  # key of a checkpoint's facts
TASK_HEADS = frozenset({"classifier", "qa_outputs", "lstm"})


@dataclass(frozen=True)
class PretrainedCheckpoint:
    """An opened checkpoint."""

    checkpoint: Checkpoint
    config: BertConfig  # with the task's labels and the run's dropout
    changes: Mapping[str, Any]  # keys that the task and the run override
    tokenizer: Tokenizer
    facts: dict[str, Any]  # its identity, for the run's record


def open_pretrained(
    name: str | Path, revision: str | None, task: Task[Any, Any], settings: FineTuneSettings
) -> PretrainedCheckpoint:
    """Open a checkpoint and check that it can be trained for a task."""
    path = resolve_model(name, revision=revision)
    checkpoint = open_checkpoint(path)
    pooling: PoolingName = "cls"
    if task.is_pooled and settings.features != "bilstm":
        pooling = task.pooling or find_pooling(path, checkpoint.config)
    elif task.pooling not in {None, "cls"}:
        raise SettingsError(
            f"--features bilstm joins the ends of its two directions: leave out --pooling"
            f" {task.pooling}"
        )
    head = describe_head(task, settings, pooling)
    changes = {**task.config_changes, **dropout_rates(settings), **head}
    kept = without_replaced_labels(checkpoint.config, changes)
    values = {name: value for name, value in kept.items() if name != FEATURE_HEAD} | changes
    config = BertConfig.from_dict(values, checkpoint.folder)
    if config.is_decoder and task.needs_both_ways:
        raise CheckpointError(
            f"{checkpoint.folder} is causal (is_decoder), and what the task {task.name}"
            " reads lies behind the token that stands for it; use a bidirectional model"
        )
    length, limit = task.settings.max_length, config.max_position_embeddings
    if length > limit:
        raise InputError(
            f"max_length ({length}) is more than the model's max_position_embeddings ({limit});"
            f" set max_length to {limit} or less"
        )
    tokenizer = load_tokenizer(checkpoint, config)
    facts = identify_checkpoint(checkpoint, path, revision)
    if is_sentence_transformers(path):
        facts[SENTENCE_ENCODER] = True
    return PretrainedCheckpoint(checkpoint, config, changes, tokenizer, facts)


def find_pooling(path: Path, config: Mapping[str, Any]) -> PoolingName:
    """Return how a model pools the tokens of a text, by its folder or its `config.json`."""
    if is_sentence_transformers(path):
        module = read_sentence_model(path).modules[0]
        modes = module.modes if isinstance(module, Pooling) else ()
        if found := [name for name in POOLINGS if modes == (name,)]:
            return found[0]
        announce(f"{path} pools tokens in a way that no classifier does; it reads [CLS] instead")
    head = config.get(FEATURE_HEAD)
    pooling = head.get("pooling") if isinstance(head, dict) else None
    return next((name for name in POOLINGS if name == pooling), "cls")


def dropout_rates(settings: FineTuneSettings) -> dict[str, float]:
    """Return the config keys that the dropout flags set."""
    rates: dict[str, float] = {}
    if settings.dropout is not None:
        rates["hidden_dropout_prob"] = rates["attention_probs_dropout_prob"] = settings.dropout
    if settings.classifier_dropout is not None:
        rates["classifier_dropout"] = settings.classifier_dropout
    return rates


def describe_head(
    task: Task[Any, Any], settings: FineTuneSettings, pooling: PoolingName
) -> dict[str, Any]:
    """Return the config key that describes a bertkit-only head; empty for other heads."""
    if not settings.has_own_layers and pooling == "cls":
        return {}
    is_choice = task.model_kind is BertForMultipleChoice
    head = FeatureHead(
        layers=settings.feature_layers,
        lstm_hidden=settings.lstm_hidden if settings.features == "bilstm" else None,
        scores="choice" if is_choice else task.row,
        pooling=pooling,
    )
    return {
        FEATURE_HEAD: head.model_dump(exclude_defaults=True) | {"lstm_hidden": head.lstm_hidden}
    }


def choose_kind(task: Task[Any, Any], pretrained: PretrainedCheckpoint) -> type[FineTunedBert]:
    """Return the class of the model."""
    return BertFeatureBased if FEATURE_HEAD in pretrained.changes else task.model_kind


def load_pretrained(parent: PretrainedCheckpoint, kind: type[FineTunedBert]) -> FineTunedBert:
    """Build the model with the checkpoint's encoder; a head of another task is reinitialized."""
    checkpoint = parent.checkpoint
    heads = set(list_heads(checkpoint.tensors))
    is_replaced = not has_same_head(parent, kind) and bool(heads & TASK_HEADS)
    if is_replaced:
        tensors = {
            name: tensor
            for name, tensor in checkpoint.tensors.items()
            if find_part(name) not in TASK_HEADS
        }
        checkpoint = replace(checkpoint, tensors=tensors)
    model = kind.from_checkpoint(checkpoint, new_heads=True, **parent.changes)
    name = name_model(checkpoint.folder)
    if is_replaced:
        announce(f"the head of {name} is for other labels, and is replaced")
    if drawn := [head for head in model.new_heads if not (is_replaced and head in TASK_HEADS)]:
        announce(f"new weights for {', '.join(drawn)}, which {name} doesn't have")
    return model


def has_same_head(parent: PretrainedCheckpoint, kind: type[FineTunedBert]) -> bool:
    """Whether the checkpoint is of this class with the same labels, so its head can be reused."""
    checkpoint = parent.checkpoint
    heads = list_heads(checkpoint.tensors)
    if find_architecture(checkpoint.config, heads, checkpoint.folder) != kind.__name__:
        return False
    before = BertConfig.from_dict(checkpoint.config, checkpoint.folder)
    return _name_labels(before) == _name_labels(parent.config)


def _name_labels(config: BertConfig) -> dict[int, str]:
    """Return the labels; other tools omit default names, such as those of question answering."""
    return config.id2label or {id_: f"LABEL_{id_}" for id_ in range(config.num_labels)}


def check_pairs(parent: PretrainedCheckpoint, has_pairs: bool) -> None:
    """Raise `InputError` for pairs of texts if the model has only one segment."""
    if has_pairs and parent.config.type_vocab_size < 2:
        raise InputError(
            f"{parent.checkpoint.folder}: type_vocab_size must be at least 2 for pairs of texts,"
            f" and is {parent.config.type_vocab_size}; take another model"
        )


@dataclass(frozen=True)
class Prepared:
    """Encoded training data."""

    task: Task[Any, Any]  # with the labels of the training examples
    tokenizer: Tokenizer
    data: FineTuningData
    train: Sequence[Encoded]
    dev: Sequence[Encoded]
    counts: Mapping[str, SetCounts]


def read_task(
    kind: type[Task[Any, Any]],
    tables: Sequence[RecordTable],
    task_settings: TaskSettings,
    settings: FineTuneSettings,
) -> tuple[Task[Any, Any], FineTuningData]:
    """Read the data, announce problems in the files, and determine the labels."""
    data = read_data(kind, tables, task_settings, settings)
    has_dev = len(tables) > 1
    for line in describe_rows(data.train) + (describe_rows(data.dev) if has_dev else []):
        announce(make_legible(line))
    if has_dev and data.train.identity["sha256"] == data.dev.identity["sha256"]:
        announce("--dev is the training data: metrics on it say nothing about other texts")
    task = _begin_task(kind, data, task_settings, has_dev=has_dev)
    check_names(task.labels)
    task.check_number(len(data.dev.examples))
    return task, data


def _begin_task(
    kind: type[Task[Any, Any]], data: FineTuningData, settings: TaskSettings, *, has_dev: bool
) -> Task[Any, Any]:
    """Build the task from the training examples; explain if the held-out split caused an error."""
    try:
        return kind.from_examples(settings, data.train.examples)
    except InputError as error:
        if has_dev:
            raise
        kind.from_examples(settings, [*data.train.examples, *data.dev.examples])
        num_held_out = len(data.dev.examples)
        raise InputError(
            f"{data.train.name}: {num_held_out:,} of {num_held_out + len(data.train.examples):,}"
            f" examples were held out, and of the rest {error}; add examples, or give held-out ones"
            " with --dev"
        ) from None


def prepare(task: Task[Any, Any], data: FineTuningData, tokenizer: Tokenizer) -> Prepared:
    """Encode the data and announce its counts and problems.

    Raises:
        InputError: most held-out labels don't occur in the training examples.
    """
    train, odd_train = encode(task, data.train, tokenizer)
    dev, odd_dev = encode(task, data.dev, tokenizer)
    counts = {
        "train": count_set(task, data.train, odd_train),
        "dev": count_set(task, data.dev, odd_dev),
    }
    told: set[str] = set()  # what holds for both sets is said once
    for found, each in ((data.train, counts["train"]), (data.dev, counts["dev"])):
        check_labels(task, found, each)
        warnings = [line for line in list_warnings(task, found, each) if line not in told]
        told.update(warnings)
        lines = (f"{found.name}: {line}" for line in warnings)
        for line in (*describe_set(task, found, each), *lines):
            announce(make_legible(line))
    for line in describe_look_alikes(counts["train"].labels):
        announce(f"{data.train.name}: {line}")
    return Prepared(task, tokenizer, data, train, dev, counts)
