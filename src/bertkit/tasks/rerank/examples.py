"""Reranking examples: a query with its candidates, read from rows or from a caller."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from bertkit.base.errors import InputError, pluralize
from bertkit.data.problems import RowReport
from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.tasks.paired_rows import PairedColumns
from bertkit.tasks.ranking import link_groups
from bertkit.tasks.rerank import RerankSettings
from bertkit.tasks.task import TaskExample


@dataclass(frozen=True, slots=True)
class RerankExample(TaskExample):
    """A query and its candidates.

    Attributes:
        relevances: of the passages, 0 for one that doesn't answer the query; empty if unknown.
        cosines: of query and passages, by the encoder that found them; empty if a file has them.
        group: the same for queries that share a relevant passage.
    """

    query: str
    passages: tuple[str, ...]
    relevances: tuple[float, ...] = ()
    cosines: tuple[float, ...] = ()
    place: str = ""  # file and line of its first row, for messages
    group: str | None = None

    @property
    def has_choice(self) -> bool:
        """Whether a passage is more relevant than another, so that their order matters."""
        return len({*self.relevances}) > 1

    @property
    def arguments(self) -> Sequence[tuple[str, str]]:
        """The query; passages are in a file."""
        return [("", self.query)]

    @property
    def num_chars(self) -> int:
        """Number of characters of all sequences."""
        return sum(len(self.query) + len(passage) for passage in self.passages)

    @property
    def shown(self) -> str:
        """The query."""
        return self.query

    @classmethod
    def build_parser(
        cls, settings: RerankSettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], "RerankExample"]:
        """Build a function that reads a query with the passages of its row."""
        columns = PairedColumns.find(settings, table, needs_answer=needs_answer)
        if not needs_answer:
            columns = replace(columns, negatives=(), score=None)

        def parse(record: Record) -> RerankExample:
            row = columns.read(record)
            passages = (row.passage, *row.negatives)
            first = 1.0 if row.score is None else max(0.0, row.score)
            relevances = (first, *(0.0 for _ in row.negatives)) if needs_answer else ()
            return RerankExample(row.query, passages, relevances, place=record.place)

        return parse

    @classmethod
    def settle(
        cls,
        examples: list[Self],
        report: RowReport,
        settings: RerankSettings,
        known: Sequence[str] = (),
    ) -> list[Self]:
        """Join the rows of each query; those that share a relevant passage are a group."""
        del settings, known
        rows: defaultdict[str, list[Self]] = defaultdict(list)
        for example in examples:
            rows[example.query].append(example)
        joined, num_contradictions = list[Self](), 0
        for own in rows.values():
            relevances: dict[str, float] = {}
            for example in own:
                for passage, value in zip(example.passages, example.relevances, strict=True):
                    num_contradictions += relevances.get(passage, value) != value
                    relevances[passage] = max(value, relevances.get(passage, 0.0))
            values = tuple(relevances.values())
            joined.append(replace(own[0], passages=tuple(relevances), relevances=values))
        if num_contradictions:
            report.notes.append(
                f"{pluralize(num_contradictions, 'passage')} of a query more and less relevant in"
                " different rows; the highest relevance counts"
            )
        groups = link_groups([[example.query, *example.positives] for example in joined])
        return [replace(one, group=group) for one, group in zip(joined, groups, strict=True)]

    @property
    def positives(self) -> tuple[str, ...]:
        """The passages that answer the query."""
        pairs = zip(self.passages, self.relevances, strict=True)
        return tuple(passage for passage, value in pairs if value > 0)

    def with_candidates(self, texts: tuple[str, ...], cosines: tuple[float, ...]) -> Self:
        """Return the query with the passages that a search found, and their cosines."""
        known = dict(zip(self.passages, self.relevances, strict=True))
        relevances = tuple(known.get(text, 0.0) for text in texts)
        return replace(self, passages=texts, relevances=relevances, cosines=cosines)

    @classmethod
    def from_value(cls, value: Any, place: str, settings: RerankSettings) -> Self:
        """Build an example from a query and one passage, or several."""
        del settings
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
            query, passages = value[0], value[1]
            passages = (passages,) if isinstance(passages, str) else passages
            is_list = isinstance(passages, list | tuple) and len(passages) > 0
            if is_list and all(isinstance(passage, str) for passage in passages):
                return cls(query, tuple(passages), place=place)
        raise InputError(
            f"{place}: expected a tuple of a query and a passage, or a list of passages; got"
            f" {value!r:.80}"
        )
