"""What is said of a text: how likely each of its sentences belongs to a summary."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bertkit.data.sentence_spans import Candidates
from bertkit.metrics.words import split_words
from bertkit.tasks.extract.choosing import Room, SameRuns, choose_sentences


@dataclass(frozen=True)
class ScoredSentence:
    """A sentence that could stand in a summary.

    Attributes:
        text: the sentence, in one line.
        number: which sentence of its text it is, from 1.
        start: its first character in the text, from 0.
        stop: the one behind its last.
        probability: that it belongs to a summary.
        is_taken: whether it is in the summary.
    """

    text: str
    number: int
    start: int
    stop: int
    probability: float
    is_taken: bool


@dataclass(frozen=True)
class Extraction:
    """A text's sentences, and those that make its summary.

    Attributes:
        sentences: in the order of the text.
    """

    sentences: tuple[ScoredSentence, ...]

    @property
    def summary(self) -> str:
        """What was taken, as running text."""
        return " ".join(sentence.text for sentence in self.sentences if sentence.is_taken)


def extract(
    candidates: Candidates, probabilities: npt.NDArray[np.float64], num_sentences: int
) -> Extraction:
    """Take the likeliest sentences that don't say the same, as in `SameRuns`.

    Args:
        candidates: of the text.
        probabilities: of each.
        num_sentences: that are taken at most.
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
