"""Labeled rows in memory: a source is opened once, and read once from its beginning to its end."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Protocol, Self, TypeVar

from bertkit.base.progress import announce
from bertkit.data.tables.records import RecordTable
from bertkit.recipes.model_card import DataCounts
from bertkit.reports.text import make_legible

HELD_OUT = ", held out"  # suffix of a set's name for its held-out part

Example = TypeVar("Example")
Tokens = TypeVar("Tokens")
Counts = TypeVar("Counts", bound=DataCounts)


class SplitSettings(Protocol):
    """Which share of the training examples is held out, and what selects them."""

    @property
    def seed(self) -> int:
        """The seed of the run."""

    @property
    def split_seed(self) -> int | None:
        """The seed of the split, if it has one of its own."""

    @property
    def held_out(self) -> float:
        """The share of the examples, over 0 and under 1."""


@dataclass
class LabeledSet(ABC, Generic[Example, Tokens, Counts]):
    """The labeled rows of a source, or a part of them.

    Attributes:
        name: in messages.
        tables: where they were read: one table, or two whose rows n belong together.
        examples: in the order of the rows.
        is_held_out: whether they are the part of a source that was held out.
    """

    name: str
    tables: Sequence[RecordTable]
    examples: list[Example]
    is_held_out: bool = False
    _encoded: Tokens | None = None
    _counts: Counts | None = None

    @property
    def encoded(self) -> Tokens:
        """The examples as token ids, once they were encoded."""
        assert self._encoded is not None, "the set was encoded"
        return self._encoded

    @property
    def counts(self) -> Counts:
        """The counts of the set, once it was encoded."""
        assert self._counts is not None, "the set was counted"
        return self._counts

    @property
    def sha256(self) -> tuple[str, ...]:
        """The SHA-256 of each table, which was computed while it was read."""
        return tuple(table.sha256 for table in self.tables)

    @property
    @abstractmethod
    def problems(self) -> list[str]:
        """Lines about rows that were left out or changed."""

    @abstractmethod
    def hold_out(self, share: float, seed: int) -> tuple[Self, Self]:
        """Return the set in two parts, of which the second has about this share."""

    def divide(self, kept: Iterable[int], taken: Iterable[int]) -> tuple[Self, Self]:
        """Return two parts by the numbers of their examples; the second is held out."""
        return (
            replace(self, examples=[self.examples[number] for number in kept]),
            replace(
                self,
                examples=[self.examples[number] for number in taken],
                name=f"{self.name}{HELD_OUT}",
                is_held_out=True,
            ),
        )


AnySet = TypeVar("AnySet", bound=LabeledSet[Any, Any, Any])


class LabeledData(ABC, Generic[AnySet]):
    """The labeled rows of a run, or of several that differ only in their seed.

    Each source is opened and read once, when its examples or its identity are first asked for.
    """

    def __init__(self, settings: SplitSettings) -> None:
        self._split = settings

    @abstractmethod
    def read(self) -> list[AnySet]:
        """Read the training examples and, if given, the held-out ones."""

    @cached_property
    def sets(self) -> list[AnySet]:
        """The training examples and, if given, the held-out ones, as they were read."""
        return self.read()

    @cached_property
    def parts(self) -> tuple[AnySet, AnySet]:
        """The training and the held-out examples; problems of their rows are announced.

        Without held-out ones, a share of the training examples is held out.
        """
        for each in self.sets:
            for line in each.problems:
                announce(make_legible(line))
        train, settings = self.sets[0], self._split
        if len(self.sets) == 1:
            seed = settings.seed if settings.split_seed is None else settings.split_seed
            return train.hold_out(settings.held_out, seed)
        dev = self.sets[1]
        if dev.sha256 == train.sha256:
            announce("--dev is the training data: metrics on it say nothing about other texts")
        return train, dev

    @property
    def train(self) -> AnySet:
        """The training examples."""
        return self.parts[0]

    @property
    def dev(self) -> AnySet:
        """The held-out examples."""
        return self.parts[1]
