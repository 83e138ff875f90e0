"""Which sentences of a text are together most like a summary: what is learned from.

Source: Nallapati et al. 2017, "SummaRuNNer", section 4.1, for taking them greedily; Liu 2019,
section 4.2, for the sum of ROUGE-1 and ROUGE-2.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

from bertkit.metrics.words import split_words

SIZES = (1, 2)  # words of what is counted

Gram: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Grams:
    """The words and the pairs of words of a text, counted.

    Attributes:
        counts: of words, and of pairs.
    """

    counts: tuple[Counter[Gram], ...]

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """Those of some words in a row."""
        runs = ([words[start:] for start in range(size)] for size in SIZES)
        return cls(tuple(Counter(zip(*run, strict=False)) for run in runs))

    def __add__(self, other: "Grams") -> "Grams":
        """Those of two texts, without pairs that reach from one into the other."""
        pairs = zip(self.counts, other.counts, strict=True)
        return Grams(tuple(one + more for one, more in pairs))

    def likeness(self, other: "Grams") -> float:
        """The sum of ROUGE-1 and ROUGE-2, as F1, of two texts."""
        return sum(map(f1, self.counts, other.counts))


def f1(one: Counter[Gram], other: Counter[Gram]) -> float:
    """Twice what two texts have in common, by what they have."""
    size = one.total() + other.total()
    return 2.0 * (one & other).total() / size if size else 0.0


def find_best(sentences: Sequence[str], summary: str, num_sentences: int) -> list[int]:
    """Take the sentence that makes the most of those before it, until none does.

    Args:
        sentences: of the text.
        summary: that a person wrote.
        num_sentences: that are taken at most.

    Returns:
        Indexes of sentences, in their order; none where no sentence has a word of the summary.
    """
    wanted = Grams.of(split_words(summary))
    grams = [Grams.of(split_words(sentence)) for sentence in sentences]
    taken: list[int] = []
    so_far, best = Grams.of(()), 0.0
    while len(taken) < min(num_sentences, len(sentences)):
        scores = [
            -1.0 if index in taken else (so_far + own).likeness(wanted)
            for index, own in enumerate(grams)
        ]
        top = max(scores)
        if top <= best:
            break
        taken.append(scores.index(top))
        so_far, best = so_far + grams[taken[-1]], top
    return sorted(taken)
