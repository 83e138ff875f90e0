"""Queries with their passages, or pairs of texts with a score."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Self, TypeVar

from bertkit.base.errors import InputError
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
        if {example.number for example in examples} <= {None, 0.0, 1.0}:
            examples = _leave_out_equal(_settle_labels(examples, report), report)
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


MAX_NEGATIVES = 8  # of a row
Example = TypeVar("Example", bound=EmbedExample)


def _settle_labels(examples: list[Example], report: RowReport) -> list[Example]:
    """Return the rows with label 1; passages with label 0 become negatives of their queries."""
    refused: defaultdict[str, list[str]] = defaultdict(list)
    for example in examples:
        if example.number == 0.0:
            refused[example.query].append(example.passages[0])
    answers = {(one.query, one.passages[0]) for one in examples if one.number != 0.0}
    kept = []
    for one in examples:
        if one.number != 0.0:
            others = (each for each in refused[one.query] if (one.query, each) not in answers)
            negatives = dict.fromkeys((*one.passages[1:], *others))
            passages = (one.passages[0], *islice(negatives, MAX_NEGATIVES))
            kept.append(replace(one, passages=passages, number=None))
    if (most := max(map(len, refused.values()), default=0)) > MAX_NEGATIVES:
        report.notes.append(
            f"a query has up to {most:,} passages with the label 0; the first {MAX_NEGATIVES} of"
            " each are used"
        )
    queries = {example.query for example in kept}
    for example in examples:
        if example.number == 0.0 and example.query not in queries:
            report.add_broken(f"{example.place} has the label 0, and no row of its query has 1")
    return kept


def _leave_out_equal(examples: list[Example], report: RowReport) -> list[Example]:
    """Leave out rows whose passage is the query itself."""
    kept = []
    for example in examples:
        if example.query == example.passages[0]:
            report.add_broken(f"{example.place} has the same text as query and as passage")
        else:
            kept.append(example)
    return kept


def _fold(text: str) -> str:
    """Return what texts share that differ only in case and spaces."""
    return " ".join(text.casefold().split())
