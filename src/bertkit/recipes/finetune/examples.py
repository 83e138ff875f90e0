"""Reads labeled files as examples of a task, splits them, and counts data problems."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from pydantic import Field

from bertkit.base.errors import InputError, pluralize
from bertkit.base.progress import show_progress
from bertkit.data.problems import (
    MAX_PLACES,
    RowReport,
    check_unknown,
    describe_unknown,
    name_problem,
)
from bertkit.data.tables.record import BrokenRowError
from bertkit.data.tables.records import RecordTable, open_records, read_examples
from bertkit.data.tables.rows import Table
from bertkit.data.tables.settings import RecordSettings
from bertkit.inference.predictor import PredictionCounts, count_encoded
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.recipes.model_card import DataCounts
from bertkit.reports.text import show
from bertkit.tasks.batch import EncodedTable
from bertkit.tasks.columns import SHOWN_CHARS, SHOWN_LABELS, name_labels, sort_labels
from bertkit.tasks.look_alikes import describe_look_alikes
from bertkit.tasks.table import TASKS
from bertkit.tasks.task import Task
from bertkit.tokenization.tokenizer import Tokenizer

HOLDING_OUT = 3  # the purpose of the random generator; part of its seed
MIN_EXAMPLES = 2
EXAMPLES_AT_ONCE = 2048
HELD_OUT = ", held out"  # suffix of a file's name for its held-out part


@dataclass(frozen=True)
class ExampleSet:
    """The examples of one file, or a part of them."""

    name: str
    examples: list[Any]
    report: RowReport
    identity: dict[str, Any]  # name, format and SHA-256 of the file


@dataclass(frozen=True)
class FineTuningData:
    """The training and the held-out examples."""

    train: ExampleSet
    dev: ExampleSet


class SetCounts(DataCounts):
    """Counts of a set of labeled examples."""

    sha256: str
    num_examples: int = Field(description="examples")
    num_broken: int = Field(description="broken rows, left out")
    num_undecodable: int = Field(description="rows with bytes that aren't UTF-8")
    num_empty: int = Field(description="empty texts")
    num_cut: int = Field(description="texts that were truncated")
    num_in_windows: int = Field(description="texts read in windows")
    num_tokens: int = Field(default=0, description="tokens of the texts")
    num_unknown: int = Field(default=0, description="tokens not in the vocabulary ([UNK])")
    # They count as errors.
    num_unseen: int = Field(description="labels that the training data lacks")
    labels: dict[str, int]  # empty if labels have no names


def open_tables(train: Table, dev: Table | None, settings: FineTuneSettings) -> list[RecordTable]:
    """Open the table of training examples and, if given, that of held-out examples."""
    tables = []
    given = {"train": train} if dev is None else {"train": train, "dev": dev}
    for flag, source in given.items():
        table = open_records(source, settings, split=flag)
        if table.identity() is None:
            raise InputError(
                f"--{flag} can't be standard input, because a resumed run reads it again;"
                f" write it to a file first"
            )
        tables.append(table)
    return tables


def read_data(
    kind: type[Task[Any, Any]], tables: Sequence[RecordTable], settings: Any, shares: Any
) -> FineTuningData:
    """Read all examples; if there is only one table, hold out a share of it."""
    train = read_set(kind, tables[0], settings)
    if len(tables) == 1:
        seed = shares.seed if shares.split_seed is None else shares.split_seed
        return hold_out(train, shares.held_out, seed)
    known = sort_labels({label for example in train.examples for label in example.label_names})
    return FineTuningData(train, read_set(kind, tables[1], settings, known))


def read_set(
    kind: type[Task[Any, Any]], table: RecordTable, settings: Any, known: Sequence[str] = ()
) -> ExampleSet:
    """Read all examples of a table; `known` are the labels of the model or the training data."""
    report = RowReport(table.name)
    example_kind = kind.example_kind
    parse = example_kind.build_parser(settings, table, needs_answer=True)
    settle = partial(example_kind.settle, settings=settings, known=known)
    examples = read_examples(table, parse, report, settle=settle)
    return ExampleSet(table.name, examples, report, table.identity() or {})


def list_arguments(
    source: Table, task: str, settings: Any, reading: RecordSettings
) -> Iterator[Sequence[tuple[str, str]]]:
    """Yield the usable rows of a training table as `TaskExample.arguments`."""
    table = open_records(source, reading)
    parse = TASKS[task].load().example_kind.build_parser(settings, table, needs_answer=True)
    for record in table.records(RowReport(table.name)):
        with suppress(BrokenRowError):
            yield parse(record).arguments


def hold_out(whole: ExampleSet, share: float, seed: int) -> FineTuningData:
    """Split off examples by seed and share of labels; those that share a text stay together."""
    number = len(whole.examples)
    if number < MIN_EXAMPLES:
        raise InputError(f"{whole.name} has {number} example; give held-out ones with --dev")
    num_held_out = min(max(1, round(share * number)), number - 1)
    together: defaultdict[str | int, list[int]] = defaultdict(list)
    for index, example in enumerate(whole.examples):
        together[example.group or index].append(index)
    # If all would stay together, each is its own group.
    groups = list(together.values()) if len(together) > 1 else [[n] for n in range(number)]
    order = np.random.default_rng((seed, HOLDING_OUT)).permutation(len(groups))
    strata = [example.stratum for example in whole.examples]
    held_out = take_groups([groups[place] for place in order], num_held_out, strata)
    kept = [example for index, example in enumerate(whole.examples) if index not in held_out]
    taken = [whole.examples[index] for index in sorted(held_out)]
    return FineTuningData(
        train=replace(whole, examples=kept),
        dev=replace(whole, examples=taken, name=f"{whole.name}{HELD_OUT}"),
    )


def take_groups(
    groups: Sequence[Sequence[int]], most: int, strata: Sequence[str | None]
) -> set[int]:
    """Take groups of indices, up to `most` examples; the smallest group if none fits."""
    taken: set[int] = set()
    room = divide_by_stratum(Counter(strata), most)
    for is_strict in (True, False):  # first the same share of each stratum, then any
        for group in groups:
            needed = Counter(strata[index] for index in group)
            has_room = not is_strict or all(
                room[stratum] >= count for stratum, count in needed.items()
            )
            if has_room and taken.isdisjoint(group) and len(taken) + len(group) <= most:
                taken.update(group)
                room.subtract(needed)
    smallest = min(groups, key=len)
    return taken or set(smallest)


def divide_by_stratum(counts: Counter[str | None], total: int) -> Counter[str | None]:
    """Divide a number among strata in proportion to their sizes, by the largest remainders."""
    whole = counts.total()
    shares = {stratum: total * count / whole for stratum, count in counts.items()}
    room = Counter({stratum: int(share) for stratum, share in shares.items()})
    by_remainder = sorted(shares, key=lambda name: (room[name] - shares[name], str(name)))
    room.update(by_remainder[: total - room.total()])
    return room


def encode(
    task: Task[Any, Any], labeled: ExampleSet, tokenizer: Tokenizer
) -> tuple[EncodedTable, PredictionCounts]:
    """Encode all examples of a set as token ids, and count data problems."""
    table, problems = EncodedTable(), PredictionCounts()
    number = len(labeled.examples)
    with show_progress(f"encoding {labeled.name}", number) as bar:
        for start in range(0, number, EXAMPLES_AT_ONCE):
            chosen = labeled.examples[start : start + EXAMPLES_AT_ONCE]
            encoded = task.encode(chosen, tokenizer)
            table.extend(encoded)
            problems.add(count_encoded(task, encoded, tokenizer))
            bar.advance(len(chosen))
    return table, problems


def count_set(task: Task[Any, Any], labeled: ExampleSet, problems: PredictionCounts) -> SetCounts:
    """Count a set's examples, labels and data problems; `problems` are the counts from encoding.

    It is an `InputError` if no token of the set is in the vocabulary.
    """
    check_unknown(labeled.name, problems.unknown_tokens, problems.text_tokens)
    labels = Counter(
        task.spell(label) for example in labeled.examples for label in example.label_names
    )
    known = set(task.labels)
    return SetCounts(
        name=f"{labeled.identity['name']}{HELD_OUT if labeled.name.endswith(HELD_OUT) else ''}",
        sha256=labeled.identity["sha256"],
        num_examples=len(labeled.examples),
        num_broken=labeled.report.num_broken,
        num_undecodable=labeled.report.num_undecodable,
        num_empty=problems.empty,
        num_cut=problems.truncated,
        num_in_windows=problems.windowed,
        num_tokens=problems.text_tokens,
        num_unknown=problems.unknown_tokens,
        num_unseen=sum(count for label, count in labels.items() if label not in known),
        labels=dict(sorted(labels.items(), key=lambda item: (-item[1], item[0]))),
    )


def describe_set(task: Task[Any, Any], labeled: ExampleSet, counts: SetCounts) -> list[str]:
    """Describe a set in a line, then notable counts, then examples of unseen labels."""
    name, number = labeled.name, counts.num_examples
    lines = [f"{name}: {pluralize(number, 'example')}{_show_labels(counts.labels)}"]
    if counts.num_empty:
        lines.append(f"{name}: {counts.num_empty:,} of them without text, kept")
    if counts.num_cut:
        lines.append(
            f"{name}: {counts.num_cut:,} of them longer than the task's settings allow, truncated"
        )
    if counts.num_in_windows:
        lines.append(f"{name}: {counts.num_in_windows:,} of them read in several windows")
    unknown = describe_unknown(counts.num_unknown, counts.num_tokens)
    lines += [name_problem(name, line) for line in unknown]
    if counts.num_unseen:
        lines.append(
            f"{name}: {pluralize(counts.num_unseen, 'label')} not among the training labels,"
            f" counted as mistakes:"
        )
        shown = list(islice(_list_unseen(task, labeled), MAX_PLACES))
        lines += [*shown, *(["  …"] if counts.num_unseen > len(shown) else [])]
    return lines


def list_warnings(task: Task[Any, Any], labeled: ExampleSet, counts: SetCounts) -> list[str]:
    """Return further warnings about a set, without its name: another set may have the same."""
    known = dict.fromkeys(task.labels, 0)
    return [*describe_look_alikes(counts.labels, known), *task.list_warnings(labeled.examples)]


def check_labels(task: Task[Any, Any], labeled: ExampleSet, counts: SetCounts) -> None:
    """Raise `InputError` if most held-out labels don't occur in the training examples."""
    if 2 * counts.num_unseen > sum(counts.labels.values()):
        first = next(_list_unseen(task, labeled)).strip()
        raise InputError(
            f"{labeled.name}: {counts.num_unseen:,} of {sum(counts.labels.values()):,} labels"
            f" aren't among the training labels ({name_labels(task.labels)}), first {first}; is"
            f" it the"
            " right file, and the right column?"
        )


def _list_unseen(task: Task[Any, Any], labeled: ExampleSet) -> Iterator[str]:
    known = set(task.labels)
    for example in labeled.examples:
        for label in map(task.spell, example.label_names):
            if label not in known:
                yield f"  {example.place}: '{show(label, SHOWN_CHARS)}'"


def _show_labels(labels: dict[str, int]) -> str:
    if not labels:
        return ""
    shown = [f"{show(name, SHOWN_CHARS)} {n:,}" for name, n in islice(labels.items(), SHOWN_LABELS)]
    more = len(labels) - SHOWN_LABELS
    return "; labels: " + ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")
