"""Text without end whose words follow Zipf's law, for what only a large corpus shows.

The 65,536 most frequent words have the frequencies 1 / (rank + 2.7); behind them comes an endless
tail of rarer ones, so that new words keep coming as they do in real text. The same size gives the
same bytes.

Source: Mandelbrot 1953, "An informational theory of the statistical structure of language".
"""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HEAD_WORDS = 1 << 16
TAIL_SHARE, TAIL_EXPONENT = 0.02, 0.5
FIRST_RANK = 2.7
BLOCK_SENTENCES = 1 << 14
LONGEST_SENTENCE, LONGEST_LINE, LONGEST_DOCUMENT = 40, 8, 60  # words, sentences, lines
NUM_SMALL_FILES = 8
SYLLABLES = [
    consonant + vowel + end
    for end in ("", "n", "r", "s")
    for vowel in "aeiou"
    for consonant in "bdfghjklmnprstvz"
]


def write_generated_corpus(folder: Path, num_bytes: int) -> None:
    """One file with half of the text, and eight with the other half."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "huge.txt", num_bytes // 2, seed=0)
    for number in range(NUM_SMALL_FILES):
        write_text(folder / f"part-{number}.txt", num_bytes // 2 // NUM_SMALL_FILES, number + 1)


def write_text(path: Path, num_bytes: int, seed: int) -> None:
    """Documents with blank lines between them, until the file is long enough."""
    generator = np.random.default_rng(seed)
    size = 0
    with path.open("wb") as stream:
        while size < num_bytes:
            lines = join_lines(draw_sentences(generator), generator)
            size += stream.write("".join(lines).encode())


def draw_sentences(generator: np.random.Generator) -> list[str]:
    ends = generator.integers(3, LONGEST_SENTENCE, BLOCK_SENTENCES).cumsum()
    num_words = int(ends[-1])
    head, cumulative = head_words()
    words = head[cumulative.searchsorted(generator.random(num_words))].tolist()
    places = np.flatnonzero(generator.random(num_words) < TAIL_SHARE)
    ranks = HEAD_WORDS * (1.0 + generator.pareto(TAIL_EXPONENT, len(places)))
    for place, rank in zip(places.tolist(), ranks.clip(max=2.0**60).tolist(), strict=True):
        words[place] = spell(int(rank))
    return [
        " ".join(words[start:end]).capitalize() + "."
        for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)
    ]


def join_lines(sentences: Sequence[str], generator: np.random.Generator) -> Iterator[str]:
    """Lines of a few sentences with their ends; an empty one ends a document."""
    start, lines_left = 0, int(generator.integers(1, LONGEST_DOCUMENT))
    for count in generator.integers(1, LONGEST_LINE, len(sentences)).tolist():
        yield " ".join(sentences[start : start + count]) + "\n"
        start, lines_left = start + count, lines_left - 1
        if start >= len(sentences):
            break
        if not lines_left:
            yield "\n"
            lines_left = int(generator.integers(1, LONGEST_DOCUMENT))
    yield "\n"


@cache
def head_words() -> tuple[NDArray[np.object_], NDArray[np.float64]]:
    """The frequent words, and their cumulative share of all frequent words."""
    words = np.array([spell(rank) for rank in range(HEAD_WORDS)], dtype=object)
    cumulative = (1.0 / (np.arange(HEAD_WORDS) + FIRST_RANK)).cumsum()
    return words, cumulative / cumulative[-1]


def spell(rank: int) -> str:
    """A word of its own for each rank, the longer the rarer."""
    word = ""
    while rank >= 0:
        rank, last = divmod(rank, len(SYLLABLES))
        word = SYLLABLES[last] + word
        rank -= 1
    return word
