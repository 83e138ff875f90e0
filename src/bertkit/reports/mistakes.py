"""Wrong predictions of a model: texts with highlighted spans, true label and prediction.

Highlights are offsets into the text; nothing in a text is ever markup.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

from bertkit.base.errors import InputError

MAX_CHARACTERS = 20_000
FOLDED_CHARACTERS = 400
EXCERPT_CHARACTERS = 280
CHARACTERS_BEFORE = 80


@dataclass(frozen=True)
class Highlight:
    """A span of a text, true or predicted."""

    start: int  # in characters
    stop: int  # after its last character; if equal to `start`, nothing is highlighted
    kind: Literal["true", "predicted"]  # whether the span is true or predicted
    label: str = ""


@dataclass(frozen=True)
class Piece:
    """A stretch of text that is covered by the same highlights throughout."""

    text: str
    kinds: str  # of its highlights: "", "true", "predicted" or "true predicted"
    words: str  # the highlights that end with it, such as "true PER, predicted LOC"


@dataclass(frozen=True)
class MarkedText:
    """One of the texts of an example."""

    text: str
    name: str = ""  # its role, such as "question"; empty if the example has one text
    highlights: Sequence[Highlight] = ()  # may overlap

    def __post_init__(self) -> None:
        for highlight in self.highlights:
            if not 0 <= highlight.start <= highlight.stop <= len(self.text):
                raise InputError(
                    f"a highlight must lie in its text of {len(self.text):,} characters, and goes"
                    f" from {highlight.start:,} to {highlight.stop:,}"
                )

    @property
    def is_long(self) -> bool:
        """Whether only an excerpt is shown until the reader expands it."""
        return len(self.text) > FOLDED_CHARACTERS

    @property
    def num_left_out(self) -> int:
        """The number of characters at the end that a page never shows."""
        return max(0, len(self.text) - MAX_CHARACTERS)

    def pieces(self) -> list[Piece]:
        """Return the text in pieces, up to the longest length that a page shows."""
        return self._cut(0, min(len(self.text), MAX_CHARACTERS))

    def excerpt(self) -> list[Piece]:
        """Return an excerpt in pieces: around the first highlight, or from the beginning."""
        first = min((highlight.start for highlight in self.highlights), default=0)
        start = max(0, min(first - CHARACTERS_BEFORE, len(self.text) - EXCERPT_CHARACTERS))
        stop = min(len(self.text), start + EXCERPT_CHARACTERS)
        before = [Piece("… ", "", "")] if start else []
        after = [Piece(" …", "", "")] if stop < len(self.text) else []
        return [*before, *self._cut(start, stop), *after]

    def _cut(self, start: int, stop: int) -> list[Piece]:
        """Split a part of the text wherever a highlight begins or ends."""
        marked = [
            highlight
            for highlight in self.highlights
            if max(start, highlight.start) < min(stop, highlight.stop)
        ]
        ends = [end for highlight in marked for end in (highlight.start, highlight.stop)]
        borders = sorted({start, stop, *(min(max(end, start), stop) for end in ends)})
        numbers = {border: number for number, border in enumerate(borders)}
        covering: list[list[Highlight]] = [[] for _ in borders]
        for highlight in marked:
            first, behind = max(start, highlight.start), min(stop, highlight.stop)
            for number in range(numbers[first], numbers[behind]):
                covering[number].append(highlight)
        pieces = []
        for number, (border, following) in enumerate(pairwise(borders)):
            found = {mark.kind for mark in covering[number]}
            kinds = " ".join(kind for kind in ("true", "predicted") if kind in found)
            ended = [mark for mark in covering[number] if mark.stop == following]
            words = sorted((f"{mark.kind} {mark.label}".strip() for mark in ended), reverse=True)
            pieces.append(Piece(self.text[border:following], kinds, ", ".join(words)))
        return pieces


@dataclass(frozen=True)
class MistakeRow:
    """An example that was predicted wrongly."""

    passages: Sequence[MarkedText]
    truth: str  # the true label or answer
    predicted: str
    confidence: float | None = None  # the model's probability of the prediction
    place: str = ""  # such as "dev.csv, line 12"


@dataclass(frozen=True)
class Mistakes:
    """Examples that were predicted wrongly, the worst first."""

    kind: ClassVar[str] = "mistakes"
    mistakes: Sequence[MistakeRow]
    title: str = ""
    note: str = ""
