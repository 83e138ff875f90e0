"""How long a study takes: by what its cells took, and by a guess before the first is done."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from bertkit.studies.study import Cell


@dataclass(frozen=True)
class StudyPace:
    """What is known of the time that cells take.

    Attributes:
        guessed: seconds that a cell of each arm was guessed to take; an arm may be missing.
        taken: seconds of the cells that are done.
    """

    guessed: Mapping[str, float]
    taken: Mapping[Cell, float]

    def seconds_of(self, arm: str) -> float | None:
        """What a cell of an arm takes; None where nobody knows."""
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
        """The time that some cells take, in words; empty where nobody knows."""
        seconds = [self.seconds_of(cell.arm) for cell in cells]
        known = [each for each in seconds if each is not None]
        if not known or len(known) < len(seconds):
            return ""
        minutes = math.ceil(sum(known) / 60)
        return f"about {minutes:,} min"
