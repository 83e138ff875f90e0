"""The labeled rows of a fine-tuning: each source is opened and read once, and encoded once."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field

from bertkit.base.errors import InputError, pluralize
from bertkit.base.progress import announce, show_progress
from bertkit.data.problems import MAX_PLACES, check_unknown, describe_unknown, name_problem
from bertkit.data.tables.records import RecordTable
from bertkit.data.tables.rows import Table
from bertkit.inference.predictor import PredictionCounts
from bertkit.models.bert.labels import check_names
from bertkit.models.open_model import OpenModel
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.recipes.finetune.verdict import number_groups
from bertkit.recipes.labeled_set import HELD_OUT, LabeledData, LabeledSet
from bertkit.recipes.model_card import DataCounts
from bertkit.reports.text import make_legible, show
from bertkit.tasks.batch import EncodedTable
from bertkit.tasks.columns import SHOWN_CHARS, SHOWN_LABELS, name_labels, sort_labels
from bertkit.tasks.embed.task import Embed
from bertkit.tasks.labeled_table import open_training_tables
from bertkit.tasks.look_alikes import describe_look_alikes
from bertkit.tasks.ranking import describe_shared, fold_text
from bertkit.tasks.settings import TaskSettings
from bertkit.tasks.table import TASKS
from bertkit.tasks.task import AnyTask
from bertkit.tasks.texts import TextExample
from bertkit.tokenization.tokenizer import Tokenizer

if TYPE_CHECKING:
    from bertkit.recipes.finetune.mining import Mined

HOLDING_OUT = 3  # the purpose of the random generator; part of its seed
MIN_EXAMPLES = 2
EXAMPLES_AT_ONCE = 2048


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


class TaskSet(LabeledSet[Any, EncodedTable, SetCounts]):
    """The labeled rows of a source as examples of a task, or a part of them."""

    @classmethod
    def read(
        cls,
        kind: type[AnyTask],
        table: RecordTable,
        settings: TaskSettings,
        known: Sequence[str] = (),
    ) -> Self:
        """Read all examples of a table; `known` are the labels of the model or the training data.

        Rows that can't be used are left out and counted. It is an `InputError` if they are too
        many, or if the table lacks a column.
        """
        parse = kind.example_kind.build_parser(settings, table, needs_answer=True)
        settle = partial(kind.example_kind.settle, settings=settings, known=known)
        return cls(table.name, [table], table.read(parse, settle))

    @property
    def problems(self) -> list[str]:
        """Lines about rows that were left out or changed."""
        return self.tables[0].report.summary_lines()

    @property
    def label_names(self) -> Iterator[str]:
        """The labels of all examples, as they are written."""
        return (label for example in self.examples for label in example.label_names)

    def hold_out(self, share: float, seed: int) -> tuple[Self, Self]:
        """Split off examples by seed and share of labels; those that share a text stay together."""
        number = len(self.examples)
        if number < MIN_EXAMPLES:
            raise InputError(f"{self.name} has {number} example; give held-out ones with --dev")
        num_held_out = min(max(1, round(share * number)), number - 1)
        held_out = self._choose_held_out(
            [each.group or row for row, each in enumerate(self.examples)], num_held_out, seed
        )
        if 2 * len(held_out) < num_held_out and (groups := self._divide_groups()):
            held_out = self._choose_held_out(groups, num_held_out, seed)
        if not held_out:  # all would stay together
            held_out = self._choose_held_out(range(number), num_held_out, seed)
            announce(
                f"{self.name}: all rows share a text, directly or by others, so held-out rows share"
                " one with training rows; metrics on them say less about other texts"
            )
        elif 2 * len(held_out) < num_held_out:
            announce(
                f"{self.name}: only {len(held_out):,} of {num_held_out:,} rows could be held out,"
                " since rows that share a text stay together; give held-out ones with --dev"
            )
        return self.divide([n for n in range(number) if n not in held_out], sorted(held_out))

    def _choose_held_out(self, groups: Sequence[object], num_held_out: int, seed: int) -> set[int]:
        """Choose examples, up to this number if their groups allow it; none of a single group."""
        together: defaultdict[object, list[int]] = defaultdict(list)
        for row, group in enumerate(groups):
            together[group].append(row)
        rows = list(together.values())
        if len(rows) == 1:
            return set()
        order = np.random.default_rng((seed, HOLDING_OUT)).permutation(len(rows))
        strata = [example.stratum for example in self.examples]
        return take_groups([rows[place] for place in order], num_held_out, strata)

    def _divide_groups(self) -> list[int]:
        """Divide large groups of several passages by query, which is announced; else none."""
        if not all(hasattr(example, "positives") for example in self.examples):
            return []
        names = [example.group for example in self.examples]
        passages: defaultdict[str | None, set[str]] = defaultdict(set)
        for example in self.examples:
            passages[example.group].update(map(fold_text, example.positives[:1]))
        queries = [
            len(passages[each.group]) > 1 and fold_text(each.query) for each in self.examples
        ]
        groups, num_divided = number_groups(names, queries)
        if not num_divided:
            return []
        announce(
            f"{self.name}: {num_divided:,} rows are linked by a chain of shared texts, so of these"
            " only rows with the same query are held out together"
        )
        numbers: list[int] = groups.tolist()
        return numbers

    def encode(self, task: AnyTask, tokenizer: Tokenizer) -> None:
        """Encode all examples as token ids, and count them and their problems."""
        self._encoded = EncodedTable()
        with show_progress(f"encoding {self.name}", len(self.examples)) as bar:
            for start in range(0, len(self.examples), EXAMPLES_AT_ONCE):
                chosen = self.examples[start : start + EXAMPLES_AT_ONCE]
                self.encoded.extend(task.encode(chosen, tokenizer))
                bar.advance(len(chosen))
        counts = self.encoded.count_tokens(tokenizer.frame_ids, tokenizer.unk_id)
        if not task.has_windows:
            counts["windowed"] = 0
        self.count(task, PredictionCounts(**counts))

    def count(self, task: AnyTask, problems: PredictionCounts) -> None:
        """Count examples, labels and data problems; `problems` are the counts from encoding.

        It is an `InputError` if no token of the set is in the vocabulary, or if most of its labels
        aren't among those of the task.
        """
        check_unknown(self.name, problems.unknown_tokens, problems.text_tokens)
        labels = Counter(self.label_names)
        known, identity, report = set(task.labels), self.tables[0].identity, self.tables[0].report
        self._counts = SetCounts(
            name=f"{identity['name']}{HELD_OUT if self.is_held_out else ''}",
            sha256=identity["sha256"],
            num_examples=len(self.examples),
            num_broken=report.num_broken,
            num_undecodable=report.num_undecodable,
            num_empty=problems.empty,
            num_cut=problems.truncated,
            num_in_windows=problems.windowed,
            num_tokens=problems.text_tokens,
            num_unknown=problems.unknown_tokens,
            num_unseen=sum(count for label, count in labels.items() if label not in known),
            labels=dict(sorted(labels.items(), key=lambda item: (-item[1], item[0]))),
        )
        if 2 * self.counts.num_unseen > labels.total():
            first = next(self._list_unseen(task)).strip()
            raise InputError(
                f"{self.name}: {self.counts.num_unseen:,} of {labels.total():,} labels aren't among"
                f" the training labels ({name_labels(task.labels)}), first {first}; is it the right"
                " file, and the right column?"
            )

    def describe(self, task: AnyTask) -> list[str]:
        """Describe the set in a line, then notable counts, then examples of unseen labels."""
        name, counts = self.name, self.counts
        lines = [
            f"{name}: {pluralize(counts.num_examples, 'example')}{_show_labels(counts.labels)}"
        ]
        if counts.num_empty:
            lines.append(f"{name}: {counts.num_empty:,} of them without text, kept")
        if counts.num_cut:
            lines.append(
                f"{name}: {counts.num_cut:,} of them longer than the task's settings allow,"
                " truncated"
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
            shown = list(islice(self._list_unseen(task), MAX_PLACES))
            lines += [*shown, *(["  …"] if counts.num_unseen > len(shown) else [])]
        return lines

    def list_warnings(self, task: AnyTask) -> list[str]:
        """Return further warnings, without the set's name: another set may have the same."""
        known = dict.fromkeys(task.labels, 0)
        return [
            *describe_look_alikes(self.counts.labels, known),
            *task.list_warnings(self.examples),
        ]

    def _list_unseen(self, task: AnyTask) -> Iterator[str]:
        known = set(task.labels)
        for example in self.examples:
            for label in example.label_names:
                if label not in known:
                    yield f"  {example.place}: '{show(label, SHOWN_CHARS)}'"


class FineTuningData(LabeledData[TaskSet]):
    """The labeled rows of a fine-tuning as examples of its task, encoded once."""

    def __init__(
        self,
        task_name: str,
        train: Table | RecordTable,
        dev: Table | RecordTable | None,  # None holds out a share of the training examples
        task_settings: TaskSettings,
        settings: FineTuneSettings,
    ) -> None:
        super().__init__(settings)
        self.kind, self.has_dev = TASKS[task_name].load(), dev is not None
        self._given = {"train": train} if dev is None else {"train": train, "dev": dev}
        self._task_settings, self._reading = task_settings, settings
        self.tokenizer: Tokenizer | None = None  # that encoded the examples
        self.mined: Mined | None = None  # passages that were added to the examples

    def read(self) -> list[TaskSet]:
        """Read the training examples and, if given, the held-out ones."""
        tables = open_training_tables(self._given, self._reading, self._task_settings)
        train = TaskSet.read(self.kind, tables[0], self._task_settings)
        known = sort_labels(set(train.label_names)) if self.has_dev else []
        others = [
            TaskSet.read(self.kind, table, self._task_settings, known) for table in tables[1:]
        ]
        return [train, *others]

    @property
    def fingerprint(self) -> str:
        """What identifies the data in the record of a run."""
        return json.dumps([each.tables[0].identity for each in self.sets], sort_keys=True)

    @cached_property
    def task(self) -> AnyTask:
        """The task, with the labels of the training examples."""
        examples, dev = self.train.examples, self.dev
        is_other = not self.has_dev or self.train.sha256 != dev.sha256
        if is_other:
            texts = {each.texts for each in examples if isinstance(each, TextExample)}
            others = [each.texts for each in dev.examples if isinstance(each, TextExample)]
            if num_shared := sum(each in texts for each in others):
                announce(
                    f"{dev.name}: {num_shared:,} of {len(others):,} texts are in the training"
                    " data too: metrics on them say nothing about other texts"
                )
        if self.shared:
            announce(f"{dev.name}: {self.shared}")
        task = self._keep_reading(self._begin_task())
        check_names(task.labels)
        task.for_evaluation(len(dev.examples))  # fails now, not after training
        return task

    @cached_property
    def shared(self) -> str:
        """How many held-out rows share a query or its passage with training rows; "" if none."""
        parts = self.train.examples, self.dev.examples
        has_passages = all(hasattr(each, "positives") for part in parts for each in part)
        return describe_shared(*parts) if has_passages else ""

    def adapt(self, opened: OpenModel) -> None:
        """Take into the task what the model that is trained says of its input."""
        if isinstance(self.task, Embed):
            self.task = self.task.for_model(opened)

    def _keep_reading(self, task: AnyTask) -> AnyTask:
        """Return the task with columns that were found, and the encoding and delimiter."""
        [table, *_] = self.train.tables
        found = {f"{role}_column": name for role, name in table.found.items()}
        given = {"encoding": table.encoding, "delimiter": table.settings.delimiter}
        reading = {name: value for name, value in given.items() if value is not None}
        return replace(task, settings=task.settings.model_copy(update=found), reading=reading)

    def _begin_task(self) -> AnyTask:
        """Build the task; explain if the held-out split caused an error."""
        kind, settings, train, dev = self.kind, self._task_settings, self.train, self.dev
        try:
            return kind.from_examples(settings, train.examples)
        except InputError as error:
            if self.has_dev:
                raise
            kind.from_examples(settings, [*train.examples, *dev.examples])
            num_held_out = len(dev.examples)
            raise InputError(
                f"{train.name}: {num_held_out:,} of {num_held_out + len(train.examples):,}"
                f" examples were held out, and of the rest {error}; add examples, or give held-out"
                " ones with --dev"
            ) from None

    def encode(self, tokenizer: Tokenizer) -> None:
        """Encode the examples, and announce their counts and problems."""
        if self.tokenizer is not None:
            return
        known: set[str] = set()  # a warning about both sets is shown once
        for labeled in self.parts:
            labeled.encode(self.task, tokenizer)
        for labeled in self.parts:
            warnings = [line for line in labeled.list_warnings(self.task) if line not in known]
            known.update(warnings)
            lines = (f"{labeled.name}: {line}" for line in warnings)
            for line in (*labeled.describe(self.task), *lines):
                announce(make_legible(line))
        for line in describe_look_alikes(self.train.counts.labels):
            announce(f"{self.train.name}: {line}")
        self.tokenizer = tokenizer


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


def _show_labels(labels: dict[str, int]) -> str:
    if not labels:
        return ""
    shown = [f"{show(name, SHOWN_CHARS)} {n:,}" for name, n in islice(labels.items(), SHOWN_LABELS)]
    more = len(labels) - SHOWN_LABELS
    return "; labels: " + ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")
