"""What a study is: a question, arms that differ in one thing, and what is measured of each.

A cell is one arm with one seed. Each is run in a folder of its own through the ordinary recipes, so
a study that was interrupted goes on with the cells that are missing. What the paper found is
written down as claims, comparisons of two sides, and the verdict on each follows from the figures.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Generic, Literal, TypeVar

from bertkit.studies.settings import StudySettings

CELLS_FOLDER = "cells"
FIRST, LAST = -math.inf, math.inf  # as the place of a side: the lowest or highest measured one


@dataclass(frozen=True)
class Arm:
    """One of the things that are compared.

    Attributes:
        name: its folder's, the word for `--only`, and what it is called in tables.
        summary: what it is, in a few words that begin in lower case.
    """

    name: str
    summary: str


@dataclass(frozen=True)
class Measure:
    """Something that is measured of every cell, or of some.

    Attributes:
        name: by which figures and claims name it.
        title: what it is called.
        unit: what its values are; in few words.
        is_higher_better: False where the lowest value is best.
        is_percent: values are shares of 1, shown as percentages.
        across: what its figures lie over, with the unit, such as "tokens of pre-training"; None
            where a cell has one figure of it.
        is_logarithmic: equal ratios of that take equal room.
        is_speed: values say how fast a machine is, which other work on it changes.
    """

    name: str
    title: str
    unit: str
    is_higher_better: bool = True
    is_percent: bool = False
    across: str | None = None
    is_logarithmic: bool = False
    is_speed: bool = False


@dataclass(frozen=True)
class Figure:
    """One measured number of a cell.

    Attributes:
        measure: its measure's name.
        value: the number; NaN where it isn't defined.
        at: the place that it lies over; None where the measure has none.
    """

    measure: str
    value: float
    at: float | None = None


@dataclass(frozen=True)
class Side:
    """One half of a comparison.

    Attributes:
        arm: the arm's name.
        at: of a measure that lies over something, the place (the nearest measured one is taken),
            `FIRST` or `LAST`; None else.
    """

    arm: str
    at: float | None = None


@dataclass(frozen=True)
class Claim:
    """What a paper found, as a comparison that figures can show, leave open or contradict.

    Attributes:
        text: what was found, as a sentence that ends without a point.
        source: paper and section or table.
        measure: by which the sides are compared.
        better: the side that came out better.
        worse: the other one.
    """

    text: str
    source: str
    measure: str
    better: Side
    worse: Side


@dataclass(frozen=True)
class Cell:
    """One arm with one seed."""

    arm: str
    seed: int

    @property
    def place(self) -> str:
        """Its folder in the study's."""
        return f"{CELLS_FOLDER}/{self.arm}/seed{self.seed}"


@dataclass(frozen=True)
class Decision:
    """What is decided once, before the first cell, and stays when the study is taken up.

    Attributes:
        values: by name, such as the tokens that a budget in minutes came to; JSON can hold them.
        seconds: that a cell of each arm will take at a guess; an arm may be missing.
    """

    values: Mapping[str, int | float | str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


SettingsKind = TypeVar("SettingsKind", bound=StudySettings)


class Study(ABC, Generic[SettingsKind]):
    """A study, configured.

    Attributes:
        name: a key of `STUDIES`.
        question: what is asked.
        finding: what the literature says to it, with the source.
        budget: what is the same for all arms.
        caution: in what this differs from the paper, and what to keep in mind when reading it.
        precision: of its nets' matrix products; "auto" is the best that the device has.
        settings: what can be chosen.
    """

    name: ClassVar[str]
    question: ClassVar[str]
    finding: ClassVar[str]
    budget: ClassVar[str]
    caution: ClassVar[str]
    precision: ClassVar[Literal["auto", "fp32"]] = "auto"

    def __init__(self, settings: SettingsKind) -> None:
        self.settings = settings

    @property
    @abstractmethod
    def arms(self) -> Sequence[Arm]:
        """What is compared, in the order in which it is run and shown."""

    @property
    @abstractmethod
    def measures(self) -> Sequence[Measure]:
        """What is measured, the most telling first."""

    @property
    @abstractmethod
    def claims(self) -> Sequence[Claim]:
        """What is held against the figures; of arms and measures that there are."""

    @abstractmethod
    def identify_data(self) -> str:
        """What tells the data from any other, such as fingerprints and checksums.

        A study isn't taken up on other data. The paths of files don't belong to it.

        Raises:
            BertkitError: the data can't be read, or are too few.
        """

    @abstractmethod
    def decide(self) -> Decision:
        """Measure what all cells need to know; called once, before the first of them.

        It writes nothing: a study that is stopped meanwhile begins anew.
        """

    @abstractmethod
    def run_cell(self, cell: Cell, folder: Path, decision: Decision) -> list[Figure]:
        """Run an arm with a seed, and measure it. The same call goes on with what was begun.

        A `BertkitError` is kept as the reason why the cell failed, and the other cells are run; a
        stop or a failure to write ends the study.

        Args:
            cell: which.
            folder: of the study. The cell's own is `folder / cell.place`; what cells share, such
                as a pre-trained model, goes beside `cells`, and is made where it is missing.
            decision: what was decided when the study began.
        """
