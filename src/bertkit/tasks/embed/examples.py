"""Queries with their passages, or pairs of texts with a score."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from bertkit.base.errors import InputError, pluralize
from bertkit.data.problems import RowReport
from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.tasks.embed import EmbeddingSettings
from bertkit.tasks.paired_rows import PairedColumns
from bertkit.tasks.ranking import link_groups
from bertkit.tasks.task import TaskExample


@dataclass(frozen=True, slots=True)
class EmbedExample(TaskExample):
    """A query and its passages, of which the first answers it; or a pair of texts with a score."""

    query: str
    passages: tuple[str, ...] = ()
    number: float | None = None  # the score of a pair
    place: str = ""  # file and line, for messages
    group: str | None = None  # what shares a text with it, directly or by others

    @classmethod
    def build_parser(
        cls, settings: EmbeddingSettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], "EmbedExample"]:
        """Build a function that reads query, passages and score from a record."""
        columns = PairedColumns.find(settings, table, needs_answer=needs_answer)

        def parse(record: Record) -> EmbedExample:
            row = columns.read(record)
            passages = (row.passage, *row.negatives)
            return EmbedExample(row.query, passages, row.score, record.place)

        return parse

    @classmethod
    def settle(
        cls,
        examples: list[Self],
        report: RowReport,
        settings: EmbeddingSettings,
        known: Sequence[str] = (),
    ) -> list[Self]:
        """Turn labels of 0 and 1 into passages, leave out what teaches nothing, find groups."""
        del settings, known
        is_binary = {example.number for example in examples} <= {None, 0.0, 1.0}
        if is_binary and not _are_scores(examples, report):
            examples = _leave_out_equal(_settle_labels(examples, report), report)
        else:
            examples = _leave_out_twins(examples, report)
        groups = link_groups([(_fold(one.query), _fold(one.passages[0])) for one in examples])
        rows = zip(examples, groups, strict=True)
        return [replace(example, group=group) for example, group in rows]

    @classmethod
    def from_value(cls, value: Any, place: str, settings: EmbeddingSettings) -> Self:
        """Build an example from a text."""
        del settings
        if not isinstance(value, str):
            raise InputError(f"{place}: expected a text, got {value!r:.80}")
        return cls(value, place=place)

    @property
    def positives(self) -> tuple[str, ...]:
        """The passage that answers the query."""
        return self.passages[:1]

    def with_candidates(self, passages: tuple[str, ...], cosines: tuple[float, ...]) -> Self:
        """Return the example with other passages, of which the first answers the query."""
        del cosines
        return replace(self, passages=passages)

    @property
    def arguments(self) -> Sequence[tuple[str, str]]:
        """The query."""
        return [("", self.query)]

    @property
    def num_chars(self) -> int:
        """Number of characters of all texts."""
        return len(self.query) + sum(map(len, self.passages))

    @property
    def shown(self) -> str:
        """The query, or both texts of a pair with a score."""
        return self.query if self.number is None else f"{self.query} ||| {self.passages[0]}"


LEAST_PAIRS = 0.1  # of all rows, that have the label 0 and a query of their own, if 0 is a score
MAX_NEGATIVES = 8  # of a row, of passages with the label 0
DRAWING = 7  # the seed of the random generator that draws them
Example = TypeVar("Example", bound=EmbedExample)


def _are_scores(examples: Sequence[EmbedExample], report: RowReport) -> bool:
    """Whether most passages with label 0 can't be negatives: no row of their query has label 1."""
    answered = {example.query for example in examples if example.number != 0.0}
    refused = [example.query for example in examples if example.number == 0.0]
    num_alone = sum(query not in answered for query in refused)
    if not answered or 2 * num_alone <= len(refused) or num_alone < LEAST_PAIRS * len(examples):
        return False
    note = (
        f"0 and 1 are scores, because no row with 1 has the first text of {num_alone:,} of"
        f" {pluralize(len(refused), 'row')} with 0"
    )
    report.notes[-1:] = ["; ".join([*report.notes[-1:], note])]  # after the columns
    return True


def _settle_labels(examples: list[Example], report: RowReport) -> list[Example]:
    """Return the rows with label 1; passages with label 0 become negatives of their queries."""
    refused: defaultdict[str, list[str]] = defaultdict(list)
    answers: defaultdict[str, set[str]] = defaultdict(set)
    for example in examples:
        if example.number == 0.0:
            refused[example.query] += example.passages
        else:
            answers[example.query].add(_fold(example.passages[0]))
    for example in examples:
        if example.number == 0.0 and example.query not in answers:
            report.add_broken(f"{example.place} has the label 0, and no row of its query has 1")
    left, kept, generator = Counter[str](), list[Example](), np.random.default_rng(DRAWING)
    usable = {one: _take_negatives(refused[one], answers[one], left) for one in answers}
    used: defaultdict[str, set[str]] = defaultdict(set)
    for one in examples:
        if one.number != 0.0:
            given = _take_negatives(one.passages[1:], answers[one.query], left)
            others = usable[one.query]
            if len(others) > MAX_NEGATIVES:
                chosen = generator.choice(len(others), MAX_NEGATIVES, replace=False, shuffle=False)
                others = [others[place] for place in sorted(chosen)]
            used[one.query].update(others)
            passages = (one.passages[0], *dict.fromkeys((*given, *others)))
            kept.append(replace(one, passages=passages, number=None))
    num_used = sum(map(len, used.values()))
    left[f"over {MAX_NEGATIVES} of each row"] = sum(map(len, usable.values())) - num_used
    _note_negatives(report, num_used, left)
    return kept


def _take_negatives(
    texts: Sequence[str], answers: Collection[str], left: Counter[str]
) -> list[str]:
    """Return negatives without repeats and answers of their query, and count what is left out."""
    unique = dict.fromkeys(texts)
    found = [text for text in unique if _fold(text) not in answers]
    left["repeated"] += len(texts) - len(unique)
    left["that answer their query"] += len(unique) - len(found)
    return found


def _note_negatives(report: RowReport, num_used: int, left: Counter[str]) -> None:
    shown = [f"{pluralize(num_used, 'passage')} with the label 0 as negatives"] if num_used else []
    counts = ", ".join(f"{count:,} {what}" for what, count in left.items() if count)
    if counts:
        shown.append(f"negatives left out: {counts}")
    if shown:
        report.notes.append("; ".join(shown))


def _leave_out_equal(examples: list[Example], report: RowReport) -> list[Example]:
    """Leave out rows whose passage is the query itself."""
    kept = []
    for example in examples:
        if example.query == example.passages[0]:
            report.add_broken(f"{example.place} has the same text as query and as passage")
        else:
            kept.append(example)
    return kept


def _leave_out_twins(examples: list[Example], report: RowReport) -> list[Example]:
    """Leave out pairs of equal texts, whose cosine is 1 whatever the model has learned."""
    kept = [example for example in examples if example.query != example.passages[0]]
    if not kept:
        raise InputError(
            f"{report.name}: each pair is the same text twice; nothing can be learned or measured"
        )
    if num_equal := len(examples) - len(kept):
        report.notes.append(f"{pluralize(num_equal, 'pair')} of equal texts left out")
    return kept


def _fold(text: str) -> str:
    """Return what texts share that differ only in case and spaces."""
    return " ".join(text.casefold().split())
