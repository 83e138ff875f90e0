"""Verdicts on claims: shown, not shown, the other way round, not decided or not measured.

A claim is shown if every run of one side is better than every run of the other: the ranges don't
overlap. That is a strict and simple rule for few runs; with three on each side, chance alone
fulfills it once in twenty comparisons. A diverged run counts as the worst of all, because
divergence is a result of its arm. If a run failed otherwise, nothing is decided, because its
figure might have overlapped.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from bertkit.reports.text import MetricCell
from bertkit_studies.study import FIRST, LAST, Claim, Measure, Side

FEWEST_RUNS = 3  # per side; chance alone separates two runs from two in one of six comparisons


class Standing(Enum):
    """The possible verdicts on a claim."""

    SHOWN = "shown"
    NOT_SHOWN = "not shown at this scale"
    OPPOSITE = "the other way round"
    UNDECIDED = "not decided"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Spread:
    """The values of several runs, with their median and range.

    Attributes:
        values: one per run, without undefined ones.
        num_failed: runs that failed or have no defined value.
        num_diverged: runs whose training diverged; not included in `num_failed`.
    """

    values: tuple[float, ...]
    num_failed: int = 0
    num_diverged: int = 0

    @classmethod
    def of(cls, values: Sequence[float], num_failed: int = 0, num_diverged: int = 0) -> "Spread":
        """Build it from values; undefined ones count as failed runs."""
        found = tuple(filter(math.isfinite, values))
        return cls(found, num_failed + len(values) - len(found), num_diverged)

    @property
    def num_compared(self) -> int:
        """Number of runs that are compared."""
        return len(self.values) + self.num_diverged

    @property
    def median(self) -> float:
        """The median; NaN if there is no value."""
        return statistics.median(self.values) if self.values else math.nan

    def rank(self, measure: Measure) -> list[float]:
        """Return a number for each compared run; the highest is the best."""
        sign = 1.0 if measure.is_higher_better else -1.0
        return [*(sign * value for value in self.values), *[-math.inf] * self.num_diverged]

    @property
    def low(self) -> float:
        """The least value; NaN if there is none."""
        return min(self.values, default=math.nan)

    @property
    def high(self) -> float:
        """The greatest value; NaN if there is none."""
        return max(self.values, default=math.nan)


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim.

    Attributes:
        claim: what the paper found.
        measure: the measure that compares the sides.
        better: figures of the side that was better in the paper.
        worse: figures of the other side.
        absence: why a side has no figures, if one has none.
    """

    claim: Claim
    measure: Measure
    better: Spread
    worse: Spread
    absence: str = ""

    @property
    def has_failures(self) -> bool:
        """Whether a run of either side failed or has no defined value."""
        return bool(self.better.num_failed or self.worse.num_failed)

    @property
    def standing(self) -> Standing:
        """The standing of the claim."""
        if self.has_failures:
            return Standing.UNDECIDED
        fewest = min(self.better.num_compared, self.worse.num_compared)
        if not fewest or not (self.better.values or self.worse.values):
            return Standing.NOT_MEASURED
        if fewest < FEWEST_RUNS:
            return Standing.UNDECIDED
        better, worse = (side.rank(self.measure) for side in (self.better, self.worse))
        if min(better) > max(worse):
            return Standing.SHOWN
        return Standing.OPPOSITE if max(better) < min(worse) else Standing.NOT_SHOWN

    def describe(self) -> str:
        """Describe the paper's finding and the verdict of these runs."""
        return f"{self.claim.text} ({self.claim.source}). Here: {self.explain()}."

    def explain(self) -> str:
        """Explain the verdict, in lower case and without a final period."""
        return f"{self.standing.value}: {self.compare()}"

    def compare(self) -> str:
        """Return the figures of both sides and the reason for the verdict."""
        if self.standing is Standing.NOT_MEASURED:
            return self.absence
        title = self.measure.title
        words = f"{title[0].lower()}{title[1:]}, {self._name(self.claim.better)}"
        words += f" {self.show(self.better)} against {self._name(self.claim.worse)}"
        reasons = (self._give_reason(), self._tell_diverged())
        return "; ".join([f"{words} {self.show(self.worse)}", *filter(None, reasons)])

    def _give_reason(self) -> str:
        """Return the reason for the verdict, if there are figures."""
        num_better, num_worse = self.better.num_compared, self.worse.num_compared
        if self.has_failures:
            return self._tell_failures()
        if self.standing is Standing.UNDECIDED:
            return (
                f"{num_better} and {num_worse} runs are too few, {FEWEST_RUNS} of each are needed"
            )
        if self.standing is Standing.NOT_SHOWN:
            return "the ranges overlap, so the difference may be chance"
        which = "better" if self.standing is Standing.SHOWN else "worse"
        words = f"each of the {num_better} runs is {which} than each of the {num_worse} others"
        if self.measure.is_speed or self.claim.better.arm == self.claim.worse.arm:
            return words  # not chance: other work on the machine or time may separate the sides
        chance = math.comb(num_better + num_worse, num_better)
        return f"{words} (chance alone: 1 in {chance:,})"

    def _tell_failures(self) -> str:
        """Describe how many runs of each side failed."""
        counts = (self.better.num_failed, self.worse.num_failed)
        return f"{self._tell_counts(*counts)} failed or have no value"

    def _tell_diverged(self) -> str:
        """Describe how many runs of each side diverged; empty if none did."""
        counts = (self.better.num_diverged, self.worse.num_diverged)
        words = self._tell_counts(*counts)
        return f"{words} diverged, the worst value of all" if words else ""

    def _tell_counts(self, num_better: int, num_worse: int) -> str:
        """Describe a number of runs per side; only once if both sides are one arm."""
        sides = (
            (num_better, self.better, self.claim.better.arm),
            (num_worse, self.worse, self.claim.worse.arm),
        )
        parts = [
            f"{count} of {side.num_compared + side.num_failed} runs of {arm}"
            for count, side, arm in sides
            if count
        ]
        return " and ".join(dict.fromkeys(parts))

    def show(self, spread: Spread) -> str:
        """Format a side's figures."""
        return show_spread(self.measure, spread) if spread.values else "no number"

    def _name(self, side: Side) -> str:
        if side.at is None or self.measure.across is None:
            return side.arm
        words = {FIRST: "at first", LAST: "at last"}
        return f"{side.arm} {words.get(side.at) or f'at {side.at:,.10g}'}"


def show_value(measure: Measure, value: float) -> str:
    """Format a value of a measure, or "not measured"."""
    return str(MetricCell(value, measure.is_percent)) if math.isfinite(value) else "not measured"


def show_spread(measure: Measure, spread: Spread) -> str:
    """Format a median, with the range if there are several values."""
    if len(spread.values) < 2:
        return show_value(measure, spread.median)
    return str(MetricCell(spread.median, measure.is_percent, (spread.low, spread.high)))


def summarize(verdicts: Sequence[Verdict]) -> str:
    """Count the verdicts of each kind, in a sentence."""
    if not verdicts:
        return "It has no claims"
    counts = [(standing, [v.standing for v in verdicts].count(standing)) for standing in Standing]
    parts = [f"{count} {standing.value}" for standing, count in counts if count]
    what = "claim" if len(verdicts) == 1 else "claims"
    return f"Of {len(verdicts)} published {what}: {', '.join(parts)}"
