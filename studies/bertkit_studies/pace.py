"""Estimate a study's remaining time from finished cells, or from estimates before that."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from bertkit_studies.study import Cell


@dataclass(frozen=True)
class StudyPace:
    """Measured and estimated times of cells.

    Attributes:
        guessed: estimated seconds of a cell of each arm; an arm may be missing.
        taken: measured seconds of finished cells.
    """

    guessed: Mapping[str, float]
    taken: Mapping[Cell, float]

    def seconds_of(self, arm: str) -> float | None:
        """Return the expected seconds of a cell of an arm; None if unknown."""
        own = [seconds for cell, seconds in self.taken.items() if cell.arm == arm]
        if own:
            return mean(own)
        known = [cell for cell in self.taken if cell.arm in self.guessed]
        if arm in self.guessed:
            guessed = sum(self.guessed[cell.arm] for cell in known)
            ratio = sum(self.taken[cell] for cell in known) / guessed if guessed else 1.0
            return self.guessed[arm] * ratio
        return mean(self.taken.values()) if self.taken else None

    def describe(self, cells: Sequence[Cell]) -> str:
        """Describe the expected time of cells; empty if unknown."""
        seconds = [self.seconds_of(cell.arm) for cell in cells]
        known = [each for each in seconds if each is not None]
        if not known or len(known) < len(seconds):
            return ""
        minutes = math.ceil(sum(known) / 60)
        return f"about {minutes:,} min"
