"""Prepares labeled data: read, describe and encode it once, for one run or for many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.base.errors import InputError
from bertkit.base.progress import announce
from bertkit.checkpoints.sentence_modules import Pooling
from bertkit.data.tables.records import RecordTable
from bertkit.models.bert.config import FEATURE_HEAD, BertConfig
from bertkit.models.bert.feature_based import FeatureHead
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.models.bert.labels import check_names
from bertkit.models.open_model import OpenModel
from bertkit.recipes.finetune.examples import (
    FineTuningData,
    SetCounts,
    check_labels,
    count_set,
    describe_set,
    encode,
    list_warnings,
    read_data,
)
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.reports.text import make_legible
from bertkit.tasks.batch import Encoded
from bertkit.tasks.look_alikes import describe_look_alikes
from bertkit.tasks.settings import POOLINGS, PoolingName, TaskSettings
from bertkit.tasks.task import Task
from bertkit.tasks.texts import TextExample
from bertkit.tokenization.tokenizer import Tokenizer

SENTENCE_ENCODER = "is_sentence_encoder"  # key of a checkpoint's facts
TASK_HEADS = frozenset({"classifier", "qa_outputs"})


def open_pretrained(
    name: str | Path | OpenModel, task: Task[Any, Any], settings: FineTuneSettings
) -> OpenModel:
    """Open a model with the task's labels and the run's dropout; check that it can be trained."""
    opened = OpenModel.open(name)
    pooling: PoolingName = "cls"
    if task.reads_texts:
        pooling = task.settings.pooling or find_pooling(opened)
    changes = task.config_changes | dropout_rates(settings)
    if settings.feature_layers != "last" or pooling != "cls":  # a head that only bertkit has
        head = FeatureHead(layers=settings.feature_layers, scores=task.scored, pooling=pooling)
        changes[FEATURE_HEAD] = head.model_dump(exclude_defaults=True) | {"lstm_hidden": None}
    opened = opened.change(**changes)
    length, limit = task.settings.max_length, opened.config.max_position_embeddings
    if length > limit:
        raise InputError(
            f"max_length ({length}) is more than the model's max_position_embeddings ({limit});"
            f" set max_length to {limit} or less"
        )
    _ = opened.tokenizer  # read and checked before the data are
    return opened


def identify(parent: OpenModel) -> dict[str, Any]:
    """Return the identity of a model, for the run's record."""
    return parent.identify() | ({SENTENCE_ENCODER: True} if parent.is_sentence_encoder else {})


def find_pooling(opened: OpenModel) -> PoolingName:
    """Return how a model pools the tokens of a text, by its modules or its config."""
    if opened.sentences is not None:
        module = opened.sentences.modules[0]
        modes = module.modes if isinstance(module, Pooling) else ()
        if found := [name for name in POOLINGS if modes == (name,)]:
            return found[0]
        announce(
            f"{opened.title} pools tokens in a way that no classifier does; it reads [CLS] instead"
        )
    head = opened.checkpoint.config.get(FEATURE_HEAD)
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


def load_pretrained(parent: OpenModel, kind: type[FineTunedBert]) -> FineTunedBert:
    """Build the model with the parent's encoder; a head of another task is reinitialized."""
    is_replaced = not has_same_head(parent, kind) and not TASK_HEADS.isdisjoint(parent.heads)
    source = parent.without_parts(TASK_HEADS) if is_replaced else parent
    model = kind.from_pretrained(source, new_heads=True)
    if is_replaced:
        announce(f"the head of {parent.name} is for other labels, and is replaced")
    if drawn := [head for head in model.new_heads if not (is_replaced and head in TASK_HEADS)]:
        announce(f"new weights for {', '.join(drawn)}, which {parent.name} doesn't have")
    return model


def has_same_head(parent: OpenModel, kind: type[FineTunedBert]) -> bool:
    """Whether the checkpoint is of this class with the same labels, so its head can be reused."""
    if parent.architecture != kind.__name__:
        return False
    before = BertConfig.from_dict(parent.checkpoint.config, parent.folder)
    # Other tools omit default names, such as those of question answering.
    return before.label_names == parent.config.label_names


def check_pairs(parent: OpenModel, has_pairs: bool) -> None:
    """Raise `InputError` for pairs of texts if the model has only one segment."""
    if has_pairs and parent.config.type_vocab_size < 2:
        raise InputError(
            f"{parent.folder}: type_vocab_size must be at least 2 for pairs of texts,"
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
    reports = [data.train.report, *([data.dev.report] if has_dev else [])]
    for line in [line for report in reports for line in report.summary_lines()]:
        announce(make_legible(line))
    if has_dev and data.train.identity["sha256"] == data.dev.identity["sha256"]:
        announce("--dev is the training data: metrics on it say nothing about other texts")
    else:
        _warn_of_shared(data)
    task = _begin_task(kind, data, task_settings, has_dev=has_dev)
    check_names(task.labels)
    task.for_evaluation(len(data.dev.examples))  # fails now, not after training
    return task, data


def _warn_of_shared(data: FineTuningData) -> None:
    """Announce how many held-out texts are training texts too."""
    if not all(isinstance(example, TextExample) for example in data.train.examples[:1]):
        return
    trained = {example.texts for example in data.train.examples}
    if num_shared := sum(example.texts in trained for example in data.dev.examples):
        announce(
            f"{data.dev.name}: {num_shared:,} of {len(data.dev.examples):,} texts are in the"
            " training data too: metrics on them say nothing about other texts"
        )


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
    """Encode the data and announce its counts and problems."""
    train, odd_train = encode(task, data.train, tokenizer)
    dev, odd_dev = encode(task, data.dev, tokenizer)
    counts = {
        "train": count_set(task, data.train, odd_train),
        "dev": count_set(task, data.dev, odd_dev),
    }
    known: set[str] = set()  # a warning about both sets is shown once
    for labeled, counted in ((data.train, counts["train"]), (data.dev, counts["dev"])):
        check_labels(task, labeled, counted)
        warnings = [line for line in list_warnings(task, labeled, counted) if line not in known]
        known.update(warnings)
        lines = (f"{labeled.name}: {line}" for line in warnings)
        for line in (*describe_set(task, labeled, counted), *lines):
            announce(make_legible(line))
    for line in describe_look_alikes(counts["train"].labels):
        announce(f"{data.train.name}: {line}")
    return Prepared(task, tokenizer, data, train, dev, counts)
