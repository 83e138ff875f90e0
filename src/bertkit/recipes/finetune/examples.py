"""Labeled files as the examples of a task, and what was met in them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from bertkit.base.errors import InputError
from bertkit.base.progress import show_progress
from bertkit.base.wording import pluralize
from bertkit.data.tables.record import NUM_SHOWN_BROKEN, RowReport
from bertkit.data.tables.records import RecordTable, gather, open_records
from bertkit.inference.prediction_counts import PredictionCounts, count_encoded
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.reports.text import show
from bertkit.tasks.columns import SHOWN_CHARS, SHOWN_LABELS, name_labels
from bertkit.tasks.encoded_table import EncodedTable
from bertkit.tasks.look_alikes import describe_look_alikes
from bertkit.tasks.task import Task
from bertkit.tokenization.tokenizer import Tokenizer

HOLDING_OUT = 3  # what the generator is for; part of its key
MIN_EXAMPLES = 2
EXAMPLES_AT_ONCE = 2048
HELD_OUT = ", held out"  # behind the name of a file of which a part is


@dataclass(frozen=True)
class ExampleSet:
    """Examples of one file, or a part of them.

    Attributes:
        name: for messages.
        examples: the task's own.
        report: what was met in the file.
        identity: name, format and SHA-256 of the file.
    """

    name: str
    examples: list[Any]
    report: RowReport
    identity: dict[str, Any]


@dataclass(frozen=True)
class Data:
    """What is learned from, and what is held against it."""

    train: ExampleSet
    dev: ExampleSet


class SetCounts(BaseModel):
    """What was met in a set of examples; a part of `metrics.json`.

    Attributes:
        name: of the file, and which part of it.
        sha256: of the file.
        num_examples: that are used.
        num_broken: rows of the file that were left out.
        num_undecodable: rows of the file that had what isn't Unicode.
        num_empty: examples without any text.
        num_cut: examples of which tokens were left out.
        num_in_windows: examples that are read in several windows.
        num_unseen: labels that training doesn't have; they count as mistakes.
        labels: how often each label is there; empty where labels have no names.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    sha256: str
    num_examples: int
    num_broken: int
    num_undecodable: int
    num_empty: int
    num_cut: int
    num_in_windows: int
    num_unseen: int
    labels: dict[str, int]


def open_tables(train: str, dev: str | None, settings: FineTuneSettings) -> list[RecordTable]:
    """The tables of training and, where there is one, of held-out examples."""
    tables = []
    for flag, source in (("train", train), ("dev", dev)):
        if source is not None:
            table = open_records(source, settings, split=flag)
            if table.identity() is None:
                raise InputError(
                    f"--{flag} can't be standard input, which is gone when the run is taken up;"
                    " write it to a file first"
                )
            tables.append(table)
    return tables


def read_data(
    kind: type[Task[Any, Any]], tables: Sequence[RecordTable], settings: Any, shares: Any
) -> Data:
    """Read all examples; where there is one table, a share of it is held out.

    Args:
        kind: the task.
        tables: as `open_tables` gives them.
        settings: the task's.
        shares: the recipe's settings: how many rows may be broken, and how many are held out.
    """
    sets = [read_set(kind, table, settings) for table in tables]
    if len(sets) == 1:
        seed = shares.seed if shares.split_seed is None else shares.split_seed
        return hold_out(kind, sets[0], shares.held_out, seed)
    return Data(*sets)


def read_set(kind: type[Task[Any, Any]], table: RecordTable, settings: Any) -> ExampleSet:
    """All examples of a table; errors as in `read_data`."""
    report = RowReport(table.name)
    parse = kind.build_parser(settings, table, needs_answer=True)
    examples = gather(table, parse, report)
    return ExampleSet(table.name, examples, report, table.identity() or {})


def hold_out(kind: type[Task[Any, Any]], whole: ExampleSet, share: float, seed: int) -> Data:
    """Part training examples in two, by the seed; what shares a text stays together."""
    number = len(whole.examples)
    if number < MIN_EXAMPLES:
        raise InputError(f"{whole.name} has {number} example; give held-out ones with --dev")
    num_held_out = min(max(1, round(share * number)), number - 1)
    groups = list_groups(kind, whole.examples)
    order = np.random.default_rng((seed, HOLDING_OUT)).permutation(len(groups))
    held_out = take_groups([groups[place] for place in order], num_held_out)
    kept = [example for index, example in enumerate(whole.examples) if index not in held_out]
    taken = [whole.examples[index] for index in sorted(held_out)]
    return Data(
        train=replace(whole, examples=kept),
        dev=replace(whole, examples=taken, name=f"{whole.name}{HELD_OUT}"),
    )


def list_groups(kind: type[Task[Any, Any]], examples: Sequence[Any]) -> list[list[int]]:
    """Numbers of examples that stay together; each one's alone where all would."""
    groups: defaultdict[str | int, list[int]] = defaultdict(list)
    for number, example in enumerate(examples):
        groups[kind.group(example) or number].append(number)
    return list(groups.values()) if len(groups) > 1 else [[n] for n in range(len(examples))]


def take_groups(groups: Sequence[Sequence[int]], most: int) -> set[int]:
    """All of the first groups that have room among so many; the smallest group where none has."""
    taken: set[int] = set()
    for group in groups:
        if len(taken) + len(group) <= most:
            taken.update(group)
    smallest = min(groups, key=len)
    return taken or set(smallest)


def encode(
    task: Task[Any, Any], found: ExampleSet, tokenizer: Tokenizer
) -> tuple[EncodedTable, PredictionCounts]:
    """Token ids of all examples of a set, and what was odd about them."""
    table, odd = EncodedTable(), PredictionCounts()
    number = len(found.examples)
    with show_progress(f"encoding {found.name}", number) as bar:
        for start in range(0, number, EXAMPLES_AT_ONCE):
            chosen = found.examples[start : start + EXAMPLES_AT_ONCE]
            encoded = task.encode(chosen, tokenizer)
            table.extend(encoded)
            odd.add(count_encoded(task, encoded))
            bar.advance(len(chosen))
    return table, odd


def count_set(task: Task[Any, Any], found: ExampleSet, odd: PredictionCounts) -> SetCounts:
    """What was met in a set; most of it shows when it is encoded."""
    labels = Counter(label for example in found.examples for label in task.list_labels(example))
    known = set(task.labels)
    return SetCounts(
        name=short_name(found),
        sha256=found.identity["sha256"],
        num_examples=len(found.examples),
        num_broken=found.report.num_broken,
        num_undecodable=found.report.num_undecodable,
        num_empty=odd.empty,
        num_cut=odd.truncated,
        num_in_windows=odd.windowed,
        num_unseen=sum(count for label, count in labels.items() if label not in known),
        labels=dict(sorted(labels.items(), key=lambda item: (-item[1], item[0]))),
    )


def short_name(found: ExampleSet) -> str:
    """The file's name without its folder, and which part of it."""
    return f"{found.identity['name']}{HELD_OUT if found.name.endswith(HELD_OUT) else ''}"


def describe_rows(found: ExampleSet) -> list[str]:
    """What was met while a file was read; empty texts are told by `describe_set`."""
    return replace(found.report, num_empty=0).summary_lines()


def describe_set(task: Task[Any, Any], found: ExampleSet, counts: SetCounts) -> list[str]:
    """A set in a line, and a line for each thing that is odd."""
    name, number = found.name, counts.num_examples
    lines = [f"{name}: {pluralize(number, 'example')}{_show_labels(counts.labels)}"]
    if counts.num_empty:
        lines.append(f"{name}: {counts.num_empty:,} of them without text, kept")
    if counts.num_cut:
        lines.append(
            f"{name}: {counts.num_cut:,} of them longer than the task's settings allow, and cut"
        )
    if counts.num_in_windows:
        lines.append(f"{name}: {counts.num_in_windows:,} of them read in several windows")
    if counts.num_unseen:
        lines.append(
            f"{name}: {pluralize(counts.num_unseen, 'label')} not among those that are learned,"
            " counted as mistakes:"
        )
        shown = list(islice(_list_unseen(task, found), NUM_SHOWN_BROKEN))
        lines += [*shown, *(["  …"] if counts.num_unseen > len(shown) else [])]
    known = dict.fromkeys(task.labels, 0)
    odd = [*describe_look_alikes(counts.labels, known), *task.list_warnings(found.examples)]
    return lines + [f"{name}: {line}" for line in odd]


def check_labels(task: Task[Any, Any], found: ExampleSet, counts: SetCounts) -> None:
    """Refuse held-out examples most of whose labels can't be learned."""
    if 2 * counts.num_unseen > sum(counts.labels.values()):
        first = next(_list_unseen(task, found)).strip()
        raise InputError(
            f"{found.name}: {counts.num_unseen:,} of {sum(counts.labels.values()):,} labels aren't"
            f" among those that are learned ({name_labels(task.labels)}), first {first}; is it the"
            " right file, and the right column?"
        )


def _list_unseen(task: Task[Any, Any], found: ExampleSet) -> Iterator[str]:
    known = set(task.labels)
    for example in found.examples:
        for label in task.list_labels(example):
            if label not in known:
                yield f"  {example.place}: '{show(label, SHOWN_CHARS)}'"


def _show_labels(labels: dict[str, int]) -> str:
    if not labels:
        return ""
    shown = [f"{show(name, SHOWN_CHARS)} {n:,}" for name, n in islice(labels.items(), SHOWN_LABELS)]
    more = len(labels) - SHOWN_LABELS
    return "; labels: " + ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")
