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


@dataclass(frozen=True)
class Candidates:
    """The sentences of a text that may be used in a summary."""

    num_sentences: int  # in the text
    numbers: tuple[int, ...]  # among all sentences, from 1
    spans: tuple[SentenceSpan, ...]
    sentences: tuple[str, ...]  # each on one line

    @classmethod
    def find(cls, text: str, language: str) -> Self:
        """Find the candidates in a text: sentences that have letters and end like a sentence.

        This excludes headings and table cells. If no sentence in the text ends like one, all with
        letters are candidates. Of sentences with the same words, only the first is.
        """
        spans = find_sentences(text, language)
        texts = [text[start:stop] for start, stop in spans]
        lettered = [index for index, each in enumerate(texts) if any(map(str.isalpha, each))]
        ended = [index for index in lettered if ends_like_a_sentence(texts[index])]
        first: dict[str, int] = {}  # by the words of a sentence
        for index in ended or lettered:
            first.setdefault(" ".join(split_words(texts[index])), index)
        chosen = first.values()
        return cls(
            num_sentences=len(spans),
            numbers=tuple(index + 1 for index in chosen),
            spans=tuple(spans[index] for index in chosen),
            sentences=tuple(" ".join(texts[index].split()) for index in chosen),
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
        joined_length = len(line) + 1 + len(cut_words(next_line, 1))
        is_wrapped = next_line[:1].islower() or joined_length > max(width, MIN_WIDTH)
        if not (line and next_line and is_wrapped):
            yield begin, stop
            begin = stop
