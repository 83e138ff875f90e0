"""Which words decided a prediction: a typed result, as text, as HTML, and as JSON data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from markupsafe import Markup

from bertkit.reports.notebook import Row
from bertkit.reports.text import format_number, format_percent, make_legible, show

NUM_NAMED = 3  # words that are left out together to check an explanation
NUM_LISTED = 6  # words in a line of text; JSON and notebooks have all
LEAST_SHARE = 0.1  # of the largest weight; a word below it isn't named, and has no color
COLORS = {True: "0, 140, 60", False: "210, 50, 30"}  # for the target, against it
TERMINAL_COLORS = {True: "\x1b[32m", False: "\x1b[31m"}


class ExplainedWord(NamedTuple):
    """A word with its weight."""

    text: str
    weight: float  # by how much the target's value falls without the word
    part: str  # the text that it is in: text, pair, question or context
    start: int  # `part[start:stop]`, in characters
    stop: int


@dataclass(frozen=True)
class Explanation:
    """Which words decided a prediction, and how far that holds.

    Attributes:
        target: what was predicted: a label, an entity with its type, an answer; of a number "".
        value: the probability of the target, or the number.
        words: those that the model read, in their order, with their weights.
        named: places in `words` of those that decided, at most three, the weightiest first.
        value_without: the value when the named words are left out together.
        value_without_random: the mean of it over as many words at random.
        method: "words left out", one at a time; or "gradients", for long texts.
        parts: the texts by name.
    """

    target: str
    value: float
    words: tuple[ExplainedWord, ...]
    named: tuple[int, ...]
    value_without: float
    value_without_random: float
    method: Literal["words left out", "gradients"]
    parts: Mapping[str, str]

    @property
    def ranking(self) -> list[ExplainedWord]:
        """The words by the size of their weights, the named ones first."""
        others = [word for place, word in enumerate(self.words) if place not in self.named]
        others.sort(key=lambda word: -abs(word.weight))
        return [*(self.words[place] for place in self.named), *others]

    def list_words(self) -> str:
        """Return the weightiest words with their weights, in percentage points or as numbers."""
        scale, form = (100, "+.1f") if self.target else (1, "+.3g")
        shown = [word for word in self.ranking[:NUM_LISTED] if word.weight]
        return ", ".join(f"{show(word.text)} {scale * word.weight:{form}}" for word in shown)

    def describe(self) -> str:
        """Return the weightiest words, and what is left without the named ones, in two lines.

        In a text of few words, random ones are mostly the named ones, and aren't worth a line.
        """
        words = self.list_words() or "no word has a weight"
        what = show(self.target) or "the number"
        lines = [f"  {words}  ({'percentage points for ' if self.target else 'of '}{what})"]
        if self.named and len(self.words) >= 2 * len(self.named):
            names = ", ".join(show(self.words[place].text) for place in self.named)
            without, at_random = map(self._format, (self.value_without, self.value_without_random))
            drawn = "a random word" if len(self.named) == 1 else f"{len(self.named)} random words"
            lines.append(
                f"  with {names} left out, {what} has {without}; with {drawn} left out, {at_random}"
            )
        return "\n".join(lines)

    def _format(self, value: float) -> str:
        return format_percent(value) if self.target else format_number(value)

    def to_json(self) -> Row:
        """Return it as JSON data; the texts aren't repeated."""
        values = {name: value for name, value in vars(self).items() if name != "parts"}
        words = [word._asdict() for word in self.words]
        return {**values, "target": self.target or None, "words": words, "named": [*self.named]}

    def cut(self, part: str) -> Iterator[tuple[str, float]]:
        """Yield the pieces of a text, legible, with the share of the largest weight, or 0."""
        text, done = make_legible(self.parts[part]), 0
        largest = max((abs(word.weight) for word in self.words), default=0.0) or 1.0
        for word in self.words:
            share = word.weight / largest
            if word.part == part and abs(share) >= LEAST_SHARE:
                yield from ((text[done : word.start], 0.0), (text[word.start : word.stop], share))
                done = word.stop
        yield text[done:], 0.0

    def to_terminal(self) -> str:
        """Return the texts in a line, with words in color: green for the target, red against it."""
        paint = "{}{}\x1b[0m".format
        pieces = [piece for part in self.parts for piece in (*self.cut(part), (" ||| ", 0.0))][:-1]
        painted = (paint(TERMINAL_COLORS[one > 0], text) if one else text for text, one in pieces)
        return " ".join("".join(painted).split())

    def _repr_html_(self) -> str:
        """Show the texts in a notebook, words with a background by weight."""
        page = Markup("<p><b>{}</b> {}</p>").format(show(self.target), self._format(self.value))
        word = Markup('<span style="background: rgba({}, {:.2f})">{}</span>')
        for part in self.parts:
            pieces = (
                word.format(COLORS[share > 0], 0.6 * abs(share), text) if share else text
                for text, share in self.cut(part)
            )
            page += Markup("<p>{}</p>").format(Markup("").join(pieces))
        return page + Markup("<p>{}</p>").format(self.describe().splitlines()[-1].strip())
