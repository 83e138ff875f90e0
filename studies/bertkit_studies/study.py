"""Base classes of studies: a question, arms that differ in one thing, and their measures.

A cell is one arm with one seed. Each runs in its own folder through the ordinary recipes, so an
interrupted study resumes with the missing cells. The paper's findings are written as claims:
comparisons of two sides. The verdict on each claim follows from the figures.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Generic, Literal, TypeVar

from bertkit_studies.settings import StudySettings

CELLS_FOLDER = "cells"
FIRST, LAST = -math.inf, math.inf  # values of `Side.at`: the lowest or highest measured position


@dataclass(frozen=True)
class Arm:
    """One of the variants that a study compares.

    Attributes:
        name: its name in folders, in tables and for `--only`.
        summary: a short description that begins in lower case.
    """

    name: str
    summary: str


@dataclass(frozen=True)
class Measure:
    """A quantity that is measured for all or some cells.

    Attributes:
        name: its key in figures and claims.
        title: its name in tables and charts.
        unit: the unit of its values, in few words.
        is_higher_better: False if the lowest value is best.
        is_percent: values are shares of 1, shown as percentages.
        across: the x-axis of its curve, with the unit, such as "tokens of pre-training"; None if
            a cell has a single figure.
        is_logarithmic: whether that axis is logarithmic.
        is_speed: values are speeds, which other work on the machine changes.
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
        value: the number; NaN if undefined.
        at: its position on the measure's `across` axis; None if there is none.
    """

    measure: str
    value: float
    at: float | None = None


@dataclass(frozen=True)
class Side:
    """One half of a comparison.

    Attributes:
        arm: the arm's name.
        at: for a measure with `across`, the position (the nearest measured one is used), `FIRST`
            or `LAST`; otherwise None.
    """

    arm: str
    at: float | None = None


@dataclass(frozen=True)
class Claim:
    """A paper's finding, as a comparison that figures can show, leave open or contradict.

    Attributes:
        text: the finding, as a sentence without a final period.
        source: paper and section or table.
        measure: name of the measure that compares the sides.
        better: the side that was better in the paper.
        worse: the other side.
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
        """Its folder, relative to the study's."""
        return f"{CELLS_FOLDER}/{self.arm}/seed{self.seed}"


@dataclass(frozen=True)
class Decision:
    """One-time decisions, made before the first cell and kept when the study is resumed.

    Attributes:
        values: values by name, such as the tokens that fit a budget in minutes; JSON types.
        seconds: estimated seconds of a cell of each arm; an arm may be missing.
    """

    values: Mapping[str, int | float | str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


SettingsKind = TypeVar("SettingsKind", bound=StudySettings)


class Study(ABC, Generic[SettingsKind]):
    """A study with its settings.

    Attributes:
        name: a key of `STUDIES`.
        question: the question that it asks.
        finding: the answer of the literature, with the source.
        budget: what all arms have in common.
        caution: differences from the paper, and limits of the results.
        precision: precision of matrix products; "auto" chooses the best for the device.
        settings: the study's settings.
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
        """The arms, in the order in which they are run and shown."""

    @property
    @abstractmethod
    def measures(self) -> Sequence[Measure]:
        """The measures, most important first."""

    @property
    @abstractmethod
    def claims(self) -> Sequence[Claim]:
        """The claims to check; they name existing arms and measures."""

    @abstractmethod
    def identify_data(self) -> str:
        """Return the identity of the data, such as fingerprints and checksums, without paths.

        A study can't be resumed on other data.

        Raises:
            BertkitError: the data can't be read, or are too few.
        """

    @abstractmethod
    def decide(self) -> Decision:
        """Make the decisions that all cells share; called once, before the first cell.

        It writes nothing: a study that is stopped meanwhile starts over.
        """

    @abstractmethod
    def run_cell(self, cell: Cell, folder: Path, decision: Decision) -> list[Figure]:
        """Run an arm with a seed, and measure it; the same call resumes an interrupted cell.

        A `BertkitError` is recorded as the cell's failure, and the other cells still run; a stop
        signal or a failed write ends the study.

        Args:
            cell: the cell to run.
            folder: the study's folder. The cell's own is `folder / cell.place`; files that cells
                share, such as a pre-trained model, go beside `cells`, created if missing.
            decision: the study's one-time decision.
        """
