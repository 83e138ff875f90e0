"""A text that ends at a stop sequence, as it is written part by part."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass
class StoppedText:
    """What is written, up to the stop sequence that ends first.

    Attributes:
        stops: the sequences, none of them empty.
        keeps_stop: whether the sequence itself stays.
    """

    stops: Sequence[str] = ()
    keeps_stop: bool = False
    text: str = ""
    is_stopped: bool = False
    _num_given: int = 0

    def add(self, part: str | None) -> str:
        """Add what is written next, or None at the end; return what no later part can change."""
        self.text += part or ""
        settled = len(self.text)
        starts = [(self.text.find(one), one) for one in self.stops if one in self.text]
        if starts:  # the one that ends first, which a stream meets first
            end, start = min((start + len(one), start) for start, one in starts)
            self.text = self.text[: end if self.keeps_stop else start]
            self.is_stopped, settled = True, len(self.text)
        elif part is not None:
            settled -= max((len(one) for one in self._begun if self.text.endswith(one)), default=0)
        given = self.text[self._num_given : settled]
        self._num_given += len(given)
        return given

    @cached_property
    def _begun(self) -> set[str]:
        """What may become a stop sequence."""
        return {one[:size] for one in self.stops for size in range(1, len(one))}
