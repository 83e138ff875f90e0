"""Where the sentences of a whole text stand: a file with paragraphs, headings and wrapped lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple, Self

from bertkit.data.readers.lines import SURROGATE
from bertkit.data.sentences import ends_like_a_sentence, split_sentences
from bertkit.metrics.words import cut_words, split_words

LEAST_WIDTH = 40  # characters; shorter lines aren't wrapped, but those of a list or a poem


class SentenceSpan(NamedTuple):
    """Where a sentence stands in its text.

    Attributes:
        start: its first character, from 0.
        stop: the one behind its last.
    """

    start: int
    stop: int

    def read(self, text: str) -> str:
        """The sentence, in one line."""
        return " ".join(text[self.start : self.stop].split())


@dataclass(frozen=True)
class Candidates:
    """The sentences of a text that a summary can be made of.

    Attributes:
        num_sentences: all sentences of the text.
        numbers: of the candidates among those, from 1.
        spans: where they stand.
        sentences: what they say, each in one line.
    """

    num_sentences: int
    numbers: tuple[int, ...]
    spans: tuple[SentenceSpan, ...]
    sentences: tuple[str, ...]

    @classmethod
    def find(cls, text: str, language: str) -> Self:
        """Those of a text."""
        spans = find_sentences(text, language)
        chosen = choose_candidates(text, spans)
        return cls(
            num_sentences=len(spans),
            numbers=tuple(index + 1 for index in chosen),
            spans=tuple(spans[index] for index in chosen),
            sentences=tuple(spans[index].read(text) for index in chosen),
        )

    def __len__(self) -> int:
        """How many there are."""
        return len(self.spans)


def find_sentences(text: str, language: str = "en") -> list[SentenceSpan]:
    """The sentences of a text, in order, none of them blank.

    A line that isn't wrapped ends a sentence, whatever it ends with.

    Args:
        text: of any length; a stretch without an end is cut as in `split_sentences`.
        language: its ISO 639-1 code.
    """
    text = SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)  # the splitter takes none
    spans = []
    for start, stop in _find_blocks(text):
        for sentence in split_sentences(text[start:stop], language):
            start = text.index(sentence, start, stop)
            spans.append(SentenceSpan(start, start := start + len(sentence)))
    return spans


def choose_candidates(text: str, spans: list[SentenceSpan]) -> list[int]:
    """Indexes of those that can stand in a summary: with letters, and an end as sentences have.

    Headings and cells of tables don't. Where no sentence of a text ends so, all with letters can.
    Of those that have the same words the first one can.
    """
    lettered = [
        number for number, (start, stop) in enumerate(spans) if has_letters(text[start:stop])
    ]
    ended = [
        number
        for number in lettered
        if ends_like_a_sentence(text[spans[number].start : spans[number].stop])
    ]
    first: dict[str, int] = {}
    for number in ended or lettered:
        words = split_words(text[spans[number].start : spans[number].stop])
        first.setdefault(" ".join(words), number)
    return list(first.values())


def has_letters(text: str) -> bool:
    """Whether a text has a letter of any script."""
    return any(map(str.isalpha, text))


def _find_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Lines, where one was wrapped together with the next: begin and end.

    A line was wrapped where the next begins with a small letter, or with a word that there was no
    room for: the longest line of the text has as many characters as fit.
    """
    stops = [*accumulate(map(len, text.splitlines(keepends=True)))]
    lines = [*pairwise([0, *stops])]
    width = max((len(text[start:stop].rstrip()) for start, stop in lines), default=0)
    begin = 0
    for (start, stop), (following, its_stop) in pairwise([*lines, (len(text), len(text))]):
        line, next_line = text[start:stop].rstrip(), text[following:its_stop].lstrip()
        if not (line and next_line and _goes_on(line, next_line, max(width, LEAST_WIDTH))):
            yield begin, stop
            begin = stop


def _goes_on(line: str, next_line: str, width: int) -> bool:
    """Whether a line was wrapped."""
    first_word = cut_words(next_line, 1)
    return next_line[0].islower() or len(line) + 1 + len(first_word) > width
