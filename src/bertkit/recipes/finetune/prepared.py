"""Prepares labeled data: read, describe and encode it once, for one run or for many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertkit.base.errors import InputError
from bertkit.base.progress import announce
from bertkit.data.tables.records import RecordTable
from bertkit.models.bert.labels import check_names
from bertkit.recipes.finetune.examples import (
    Data,
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
from bertkit.tasks.look_alikes import describe_look_alikes
from bertkit.tasks.settings import TaskSettings
from bertkit.tasks.task import Task
from bertkit.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class Prepared:
    """Encoded training data.

    Attributes:
        task: the task, with the labels of the training examples.
        tokenizer: the tokenizer that encoded the examples.
        data: the examples.
        train: training examples as token ids.
        dev: held-out examples as token ids.
        counts: counts of the sets `train` and `dev`.
    """

    task: Task[Any, Any]
    tokenizer: Tokenizer
    data: Data
    train: Sequence[Encoded]
    dev: Sequence[Encoded]
    counts: Mapping[str, SetCounts]


def read_task(
    kind: type[Task[Any, Any]],
    tables: Sequence[RecordTable],
    task_settings: TaskSettings,
    settings: FineTuneSettings,
) -> tuple[Task[Any, Any], Data]:
    """Read the data, announce problems in the files, and determine the labels.

    Args:
        kind: the task.
        tables: the tables that `open_tables` returned.
        task_settings: the task's settings.
        settings: the settings common to all tasks.
    """
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
    kind: type[Task[Any, Any]], data: Data, settings: TaskSettings, *, has_dev: bool
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


def prepare(task: Task[Any, Any], data: Data, tokenizer: Tokenizer) -> Prepared:
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
