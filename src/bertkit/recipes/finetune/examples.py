"""Labelled files as the examples of a task."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bertkit.base.errors import InputError
from bertkit.data.tables.record import RowReport
from bertkit.data.tables.records import gather, open_records
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.settings import TaskSettings
from bertkit.tasks.task import Task

HOLDING_OUT = 3  # what the generator is for; part of its key
MIN_EXAMPLES = 2


@dataclass(frozen=True)
class ExampleSet:
    """Examples of one file.

    Attributes:
        examples: the task's own.
        report: what was met in the file.
        identity: name, format and SHA-256 of the file.
    """

    examples: list[Any]
    report: RowReport
    identity: dict[str, Any]


def read_examples(
    kind: type[Task[Any, Any]],
    source: str,
    task_settings: TaskSettings,
    settings: FineTuneSettings,
    split: str,
) -> ExampleSet:
    """Read a file, a GLUE folder or a data set of the Hub.

    Raises:
        InputError: columns are missing, too many rows are broken, or there is none.
        BertkitError: it can't be read.
    """
    table = open_records(source, settings, split=split)
    report = RowReport(table.name)
    parse = kind.build_parser(task_settings, table, needs_answer=True)
    examples = gather(table, parse, report, settings.max_broken)
    return ExampleSet(examples, report, table.identity() or {})


def hold_out(train: ExampleSet, share: float, seed: int) -> tuple[ExampleSet, ExampleSet]:
    """Split training examples in two, by the seed.

    Raises:
        InputError: there are too few.
    """
    number = len(train.examples)
    if number < MIN_EXAMPLES:
        raise InputError(f"{train.report.name} has {number} example; give held-out ones with --dev")
    num_held_out = min(max(1, round(share * number)), number - 1)
    order = np.random.default_rng((seed, HOLDING_OUT)).permutation(number)
    held_out = set(order[:num_held_out].tolist())
    parts: tuple[list[Any], list[Any]] = ([], [])
    for index, example in enumerate(train.examples):
        parts[index in held_out].append(example)
    kept, taken = (ExampleSet(part, train.report, train.identity) for part in parts)
    return kept, taken
