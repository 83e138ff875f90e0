"""Which words decided a prediction: a typed result, as text, as HTML, and as JSON data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from markupsafe import Markup

from bertkit.reports.notebook import Row, Tabular
from bertkit.reports.text import format_number, format_percent, make_legible, show

NUM_NAMED = 3  # words that are left out together to check an explanation
NUM_LISTED = 6  # words in a line of text; JSON and notebooks have all
LEAST_SHARE = 0.1  # of the largest weight; a word below it isn't named, and has no color
COLORS = {True: "0, 140, 60", False: "210, 50, 30"}  # for the target, against it
TERMINAL_COLORS = {True: "\x1b[32m", False: "\x1b[31m"}
BOLD, RESET = "\x1b[1m", "\x1b[0m"
BOLD_SHARE = 0.5


class ExplainedWord(NamedTuple):
    """A word with its weight."""

    text: str
    weight: float  # by how much the target's value falls without the word
    part: str  # the text that it is in: text, pair, question or context
    start: int  # `part[start:stop]`, in characters
    stop: int


@dataclass(frozen=True)
class Explanation(Tabular):
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
    def is_number(self) -> bool:
        """Whether the value is a number that was predicted, and not a probability."""
        return not self.target

    @property
    def ranking(self) -> list[ExplainedWord]:
        """The words by the size of their weights, the named ones first."""
        others = [word for place, word in enumerate(self.words) if place not in self.named]
        others.sort(key=lambda word: -abs(word.weight))
        return [*(self.words[place] for place in self.named), *others]

    def list_words(self) -> str:
        """Return the weightiest words with their weights, in percentage points or as numbers."""
        scale, form = (1, "+.3g") if self.is_number else (100, "+.1f")
        shown = [word for word in self.ranking[:NUM_LISTED] if word.weight]
        return ", ".join(f"{show(word.text)} {scale * word.weight:{form}}" for word in shown)

    def describe(self) -> str:
        """Return the weightiest words, and what is left without the named ones, in two lines."""
        words, target = self.list_words() or "no word has a weight", show(self.target)
        unit = "the number" if self.is_number else f"points of {target}"
        lines = [f"  {words}  ({unit})"]
        if self.named:
            format_value = format_number if self.is_number else format_percent
            names = ", ".join(show(self.words[place].text) for place in self.named)
            at_random = "a word" if len(self.named) == 1 else f"{len(self.named)} words"
            lines.append(
                f"  without {names}: {format_value(self.value_without)}; without {at_random} at"
                f" random: {format_value(self.value_without_random)}"
            )
        return "\n".join(lines)

    def to_json(self) -> Row:
        """Return it as JSON data; the texts aren't repeated."""
        return {
            "target": self.target or None,
            "value": self.value,
            "words": [word._asdict() for word in self.words],
            "named": list(self.named),
            "value_without": self.value_without,
            "value_without_random": self.value_without_random,
            "method": self.method,
        }

    def as_rows(self) -> list[Row]:
        """Return a row for each word, the weightiest first."""
        return [{"word": word.text, "weight": word.weight} for word in self.ranking]

    def cut(self, part: str) -> Iterator[tuple[str, float]]:
        """Yield the pieces of a text with the share of the largest weight; between words 0."""
        text, done = self.parts[part], 0
        largest = max((abs(word.weight) for word in self.words), default=0.0) or 1.0
        for word in self.words:
            if word.part == part:
                yield text[done : word.start], 0.0
                yield text[word.start : word.stop], word.weight / largest
                done = word.stop
        yield text[done:], 0.0

    def to_terminal(self) -> str:
        """Return the texts in a line, with words in color: green for the target, red against it."""
        return "  ".join(
            "".join(_paint(*piece) for piece in self.cut(part)).strip() for part in self.parts
        )

    def _repr_html_(self) -> str:
        """Show the texts in a notebook, words with a background by weight."""
        value = format_number(self.value) if self.is_number else format_percent(self.value)
        texts = (Markup("").join(_mark(*piece) for piece in self.cut(one)) for one in self.parts)
        paragraphs = Markup("").join(Markup("<p>{}</p>").format(text) for text in texts)
        told = self.describe().splitlines()[-1].strip()
        head = Markup("<p><b>{}</b> {}</p>").format(show(self.target), value)
        return head + paragraphs + Markup("<p>{}</p>").format(told)


def _paint(text: str, share: float) -> str:
    legible = make_legible(text).replace("\n", " ").replace("\r", " ").replace("\t", " ")
    if abs(share) < LEAST_SHARE:
        return legible
    weight = BOLD if abs(share) >= BOLD_SHARE else ""
    return f"{weight}{TERMINAL_COLORS[share > 0]}{legible}{RESET}"


def _mark(text: str, share: float) -> Markup:
    legible = make_legible(text)
    if abs(share) < LEAST_SHARE:
        return Markup("{}").format(legible)
    style = f"background: rgba({COLORS[share > 0]}, {0.6 * abs(share):.2f})"
    return Markup('<span style="{}">{}</span>').format(style, legible)
