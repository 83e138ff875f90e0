"""The prediction for a text: the probability of each sentence, and the summary."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bertkit.data.sentence_spans import Candidates
from bertkit.metrics.words import split_words
from bertkit.reports.notebook import Row, Tabular
from bertkit.tasks.extract.choosing import Room, SameRuns, choose_sentences


@dataclass(frozen=True)
class ScoredSentence(Tabular):
    """A candidate sentence with its probability.

    Attributes:
        text: the sentence, in one line.
        number: number of the sentence in its text, from 1.
        start: index of its first character in the text, from 0.
        stop: index after its last character.
        probability: probability that it belongs to a summary.
        is_taken: whether it is in the summary.
    """

    text: str
    number: int
    start: int
    stop: int
    probability: float
    is_taken: bool


@dataclass(frozen=True)
class Extraction(Tabular):
    """A text's sentences, with those of its summary marked.

    Attributes:
        sentences: in the order of the text.
    """

    sentences: tuple[ScoredSentence, ...]

    @property
    def summary(self) -> str:
        """The selected sentences, joined."""
        return " ".join(sentence.text for sentence in self.sentences if sentence.is_taken)

    def as_row(self) -> Row:
        """Return the summary."""
        return {"summary": self.summary}

    def as_rows(self) -> Sequence[Row]:
        """Return a row for each sentence."""
        return [sentence.as_row() for sentence in self.sentences]


def extract(
    candidates: Candidates, probabilities: npt.NDArray[np.float64], num_sentences: int
) -> Extraction:
    """Select the likeliest sentences that don't repeat each other, as in `SameRuns`.

    Args:
        candidates: candidate sentences of the text.
        probabilities: probability of each.
        num_sentences: maximum number of sentences to select.
    """
    words = [split_words(sentence) for sentence in candidates.sentences]
    lengths = list(map(len, words))
    room = Room(num_sentences)
    taken = choose_sentences(probabilities, SameRuns(words), lengths, room)
    numbers = {one.index for one in taken}
    return Extraction(
        tuple(
            ScoredSentence(
                text=sentence,
                number=candidates.numbers[index],
                start=candidates.spans[index].start,
                stop=candidates.spans[index].stop,
                probability=float(probabilities[index]),
                is_taken=index in numbers,
            )
            for index, sentence in enumerate(candidates.sentences)
        )
    )
