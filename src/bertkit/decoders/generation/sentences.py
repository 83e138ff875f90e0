"""The sentences of a text that a summary may have, with their positions."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple, Self

from bertkit.data.sentences import ends_like_a_sentence, split_sentences
from bertkit.tokenization.words import SURROGATE, cut_words, split_words

MIN_WIDTH = 40  # characters; shorter lines are from lists or poems, not wrapped


class SentenceSpan(NamedTuple):
    """The position of a sentence in its text."""

    start: int
    stop: int  # after its last character

    def read(self, text: str) -> str:
        """Return the sentence on one line."""
        return " ".join(text[self.start : self.stop].split())


@dataclass(frozen=True)
class Candidates:
    """The sentences of a text that may be used in a summary."""

    num_sentences: int  # in the text
    numbers: tuple[int, ...]  # among all sentences, from 1
    spans: tuple[SentenceSpan, ...]
    sentences: tuple[str, ...]  # each on one line

    @classmethod
    def find(cls, text: str, language: str) -> Self:
        """Find the candidates in a text."""
        spans = find_sentences(text, language)
        chosen = choose_candidates(text, spans)
        return cls(
            num_sentences=len(spans),
            numbers=tuple(index + 1 for index in chosen),
            spans=tuple(spans[index] for index in chosen),
            sentences=tuple(spans[index].read(text) for index in chosen),
        )

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.spans)


def find_sentences(text: str, language: str = "en") -> list[SentenceSpan]:
    """Return the sentences of a text in order, none of them blank.

    The end of a line that isn't wrapped always ends a sentence; long passages without a sentence
    end are cut as in `split_sentences`.
    """
    text = SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)  # the splitter rejects surrogates
    spans = []
    for start, stop in _find_blocks(text):
        for sentence in split_sentences(text[start:stop], language):
            start = text.index(sentence, start, stop)
            spans.append(SentenceSpan(start, start := start + len(sentence)))
    return spans


def choose_candidates(text: str, spans: list[SentenceSpan]) -> list[int]:
    """Return the indices of sentences that have letters and end like a sentence.

    This excludes headings and table cells. If no sentence in the text ends like one, all with
    letters are returned. Of sentences with the same words, only the first is.
    """
    lettered = [
        number
        for number, (start, stop) in enumerate(spans)
        if any(map(str.isalpha, text[start:stop]))
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


def _find_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and stop of each line, joined with the next if it was wrapped.

    A line was wrapped if the next begins with a lowercase letter, or with a word that didn't fit:
    the longest line of the text is taken as the width.
    """
    stops = [*accumulate(map(len, text.splitlines(keepends=True)))]
    lines = [*pairwise([0, *stops])]
    width = max((len(text[start:stop].rstrip()) for start, stop in lines), default=0)
    begin = 0
    for (start, stop), (following, its_stop) in pairwise([*lines, (len(text), len(text))]):
        line, next_line = text[start:stop].rstrip(), text[following:its_stop].lstrip()
        if not (line and next_line and _is_wrapped(line, next_line, max(width, MIN_WIDTH))):
            yield begin, stop
            begin = stop


def _is_wrapped(line: str, next_line: str, width: int) -> bool:
    """Whether a line was wrapped."""
    first_word = cut_words(next_line, 1)
    return next_line[0].islower() or len(line) + 1 + len(first_word) > width
