"""Passages: the parts of a document that are embedded and found, each no longer than a model reads.

A file of plain text is cut at its blank lines, or at each line end if it has none; a heading of
Markdown goes with what follows. What is longer than a passage is cut between sentences, a
long sentence at line ends, else at blanks, else anywhere. Parts of one paragraph overlap by whole
sentences.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from bertkit.data.documents import LINE_END
from bertkit.data.sentences import segment_sentences

LINE, BLANKS = re.compile(r"\S[^\r\n]*"), re.compile(r"\s*")
HEADING, UNDERLINE = re.compile(r"#{1,6}[ \t]+\S"), re.compile(r"(={2,}|-{2,})\s*")
FRONT_MATTER = re.compile(r"---[ \t\r]*\n(?:.*\S.*\n)+?---[ \t\r]*$", re.MULTILINE)
BOUNDARIES = (LINE_END, re.compile(r"\s"))  # of a long sentence, the better ones first
CHARACTERS_PER_TOKEN = 32  # longer texts are cut without being measured

Measure = Callable[[str], int]  # the number of tokens of a text
Span = tuple[int, int]  # start and end in the text, neither at a blank


@dataclass(frozen=True)
class Passage:
    """A part of a document's text, with the blanks behind it."""

    start: int  # its first character in the text
    line: int  # of its first character that isn't blank, from 1
    text: str


def cut_passages(
    text: str, measure: Measure, max_tokens: int, overlap: float, *, stays_whole: bool = False
) -> list[Passage]:
    """Cut a text into passages that leave nothing out; a blank text has none.

    Args:
        measure: returns the number of tokens of a text, without special ones.
        max_tokens: size of a passage.
        overlap: the share of a passage that the next one repeats, at most.
        stays_whole: whether a text that fits is one passage, as that of a row of a table is.
    """
    if not text.replace("\0", "").strip():
        return []
    cutter = _Cutter(text, measure, max_tokens, overlap)
    blocks = [_strip(text, 0, len(text))] if stays_whole else _find_blocks(text)
    starts = [0, *(found.end() for found in LINE_END.finditer(text))]
    passages = list[Passage]()
    for start, end in (span for block in blocks for span in cutter.cut(block)):
        behind = _skip_blanks(text, end)
        line, start = bisect_right(starts, start), start if passages else 0
        passages.append(Passage(start, line, text[start:behind]))
    return passages


def _find_blocks(text: str) -> list[Span]:
    """Return the paragraphs of a text, or the lines if no blank line separates any."""
    lines = [found.span() for found in LINE.finditer(text)]
    are_apart = [
        len(LINE_END.findall(text, before, start)) > 1
        for (_, before), (start, _) in pairwise(lines)
    ]
    front = FRONT_MATTER.match(text)
    before = front.end() if front else 0
    are_headings = [start < before or HEADING.match(text, start) is not None for start, _ in lines]
    for number, is_apart in enumerate(are_apart, start=1):
        if UNDERLINE.fullmatch(text, *lines[number]):  # of the line above, else a rule
            are_headings[number - 1 + is_apart : number + 1] = [True] * (2 - is_apart)
    joins_lines, has_only_headings = any(are_apart), False
    blocks = list[Span]()
    rows = zip(lines, [True, *are_apart], are_headings, strict=True)
    for (start, end), is_apart, is_heading in rows:
        if has_only_headings or (joins_lines and not is_apart and not is_heading):
            blocks[-1] = blocks[-1][0], end
            has_only_headings &= is_heading
        else:
            blocks.append((start, end))
            has_only_headings = is_heading
    return [_strip(text, *block) for block in blocks]


def _strip(text: str, start: int, end: int) -> Span:
    """Return a span, which isn't blank, without the blanks around it."""
    start = _skip_blanks(text, start)
    return start, start + len(text[start:end].rstrip())


def _skip_blanks(text: str, start: int) -> int:
    found = BLANKS.match(text, start)
    return found.end() if found else start


@dataclass(frozen=True)
class _Cutter:
    """Cuts what is longer than a passage."""

    text: str
    measure: Measure
    max_tokens: int
    overlap: float

    def cut(self, block: Span) -> list[Span]:
        """Return the parts of a block, each as long as possible."""
        if self._count(*block) <= self.max_tokens:
            return [block]
        starts, ends, sizes = zip(*self._find_units(*block), strict=True)
        totals = [0, *accumulate(sizes)]
        parts, first, last = list[Span](), 0, 0  # of the units of a part; the last isn't in it
        while last < len(sizes):
            needed = last + 1
            last = max(needed, bisect_right(totals, totals[first] + self.max_tokens) - 1)
            # A text may have more tokens than its parts have.
            while last > needed and self._count(starts[first], ends[last - 1]) > self.max_tokens:
                last -= 1
            parts.append((starts[first], ends[last - 1]))
            repeated = self.overlap * self.max_tokens
            first = max(first + 1, bisect_left(totals, totals[last] - repeated))
            while (
                first < last < len(ends)
                and self._count(starts[first], ends[last]) > self.max_tokens
            ):
                first += 1
        return parts

    def _count(self, start: int, end: int) -> int:
        """Count the tokens of a span, or too many if it is too long to be measured."""
        is_short = end - start <= CHARACTERS_PER_TOKEN * self.max_tokens
        return self.measure(self.text[start:end]) if is_short else self.max_tokens + 1

    def _find_units(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield start, end and size of the sentences of a block, long ones in parts."""
        for sentence in segment_sentences(self.text[start:end]):
            if sentence.strip():
                yield from self._divide(*_strip(self.text, start, start + len(sentence)))
            start += len(sentence)

    def _divide(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Divide a sentence near its middle until each part fits."""
        size = self._count(start, end)
        if end - start < 2 or size <= self.max_tokens:
            yield start, end, size
            return
        third = max(1, (end - start) // 3)
        found = (each.search(self.text, start + third, end - third) for each in BOUNDARIES)
        middle = next((one.start() for one in found if one), (start + end) // 2)
        for part in ((start, middle), (middle, end)):
            yield from self._divide(*_strip(self.text, *part))
