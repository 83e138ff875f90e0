"""Oracle labels for training: the sentences with the highest ROUGE against the summary.

Source: Nallapati et al. 2017, "SummaRuNNer", section 4.1, for greedy selection; Liu 2019, section
4.2, for the sum of ROUGE-1 and ROUGE-2.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

from bertkit.metrics.words import split_words

SIZES = (1, 2)  # n of the n-grams

Gram: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Grams:
    """Counts of the unigrams and bigrams of a text.

    Attributes:
        counts: counts of unigrams, and of bigrams.
    """

    counts: tuple[Counter[Gram], ...]

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """Count the n-grams of consecutive words."""
        runs = ([words[start:] for start in range(size)] for size in SIZES)
        return cls(tuple(Counter(zip(*run, strict=False)) for run in runs))

    def __add__(self, other: "Grams") -> "Grams":
        """Add the counts of two texts, without bigrams across their border."""
        pairs = zip(self.counts, other.counts, strict=True)
        return Grams(tuple(one + more for one, more in pairs))

    def likeness(self, other: "Grams") -> float:
        """Return the sum of ROUGE-1 and ROUGE-2 F1 of two texts."""
        return sum(map(f1, self.counts, other.counts))


def f1(one: Counter[Gram], other: Counter[Gram]) -> float:
    """Return the F1 of two bags of n-grams: 2 x overlap / total."""
    size = one.total() + other.total()
    return 2.0 * (one & other).total() / size if size else 0.0


def find_best(sentences: Sequence[str], summary: str, num_sentences: int) -> list[int]:
    """Select sentences greedily, each the one that raises ROUGE most, until none does.

    Args:
        sentences: sentences of the text.
        summary: reference summary.
        num_sentences: maximum number of sentences to select.

    Returns:
        Sorted indexes of sentences; empty if no sentence has a word of the summary.
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
