"""What is explained of a prediction: a label, a number, an entity, an answer, each as a score."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from bertkit.inference.activations import sigmoid
from bertkit.tasks.answer.scoring import Answer, Windows, find_tokens
from bertkit.tasks.batch import Encoded, Logits
from bertkit.tasks.classify.decoding import Classification
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.tag.decoding import Tagging
from bertkit.tasks.task import AnyTask, TaskPrediction

MAX_TARGETS = 10  # labels or entities of a text that are explained, the first
LEAST = 1e-12  # probability, so that log-odds are finite

Rows = npt.NDArray[np.int64]
# Float64 arrays; or PyTorch's tensors, whose gradients are followed: both have what is used here.
Scores: TypeAlias = Any


class Target(NamedTuple):
    """What is explained."""

    name: str  # empty for a number
    score: Callable[[Scores], Scores]  # of logits, `[rows, outputs]`: log-odds, or a number

    def to_value(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the probabilities of log-odds; numbers as they are."""
        return np.asarray(sigmoid(scores), np.float64) if self.name else scores


def _exp(values: Scores) -> Scores:
    return np.exp(values) if isinstance(values, np.ndarray | np.generic) else values.exp()


def _log(values: Scores) -> Scores:
    return np.log(values) if isinstance(values, np.ndarray | np.generic) else values.log()


def _log_sum_exp(values: Scores, axis: int) -> Scores:
    """Return the logarithm of the sum of exponentials along an axis, which stays."""
    highest = values.max(axis=axis, keepdims=True)
    highest = getattr(highest, "values", highest)  # PyTorch gives places, too
    return _log(_exp(values - highest).sum(axis=axis, keepdims=True)) + highest


def _find_log_odds(shares: Scores) -> Scores:
    shares = shares.clip(LEAST, 1 - LEAST)
    return _log(shares / (1 - shares))


def list_targets(
    task: AnyTask, prediction: TaskPrediction, encoded: Encoded, logits: Logits
) -> list[Target]:
    """Return what of a prediction is explained; none of a sentence without an entity."""
    if isinstance(prediction, Classification):
        assert isinstance(task, Classify), "only classifiers give labels"
        found = _list_labels(task, prediction)
    elif isinstance(prediction, Tagging):
        found = _list_entities(prediction, encoded, logits)
    elif isinstance(prediction, Answer):
        found = _list_answers(prediction, encoded)
    else:
        found = iter([Target("", lambda logits: logits.mean())])
    return [*islice(found, MAX_TARGETS)]


def _list_labels(task: Classify, prediction: Classification) -> Iterator[Target]:
    """List the labels that are given, or else the likeliest."""
    for label in prediction.labels or (prediction.label,):

        def score(logits: Scores, place: int = task.labels.index(label)) -> Scores:
            scores = logits.mean(axis=0) / task.temperature  # over windows
            if task.settings.multi_label:
                return scores[place]
            others = [other for other in range(len(scores)) if other != place]
            return scores[place] - _log_sum_exp(scores[others], axis=0)[0]

        yield Target(label, score)


def _list_entities(prediction: Tagging, encoded: Encoded, logits: Logits) -> Iterator[Target]:
    """List the entities; each has the mean probability of its words' tags."""
    _, rows = encoded.alignment
    for entity in prediction.entities:
        own = rows[entity.first_word : entity.stop_word]
        tags = logits[own].argmax(axis=-1)

        def score(logits: Scores, own: Rows = own, tags: Rows = tags) -> Scores:
            logs = logits[own] - _log_sum_exp(logits[own], axis=1)
            return _find_log_odds(_exp(logs[range(len(own)), tags]).mean())

        yield Target(f"{entity.type} {entity.text}", score)


def _find_window(windows: Windows, tokens: tuple[int, int]) -> tuple[int, tuple[int, int]]:
    """Return the window that has most of an answer, and the places of its first and last token.

    Where several pieces are bytes of one character, the first one of the answer's characters may be
    in another window than the answer.
    """
    owner, (first, last) = int(windows.owners[tokens[0]]), tokens

    def rate(number: int) -> tuple[int, bool]:
        part = windows.parts[number]
        return min(last, part.stop - 1) - max(first, part.start), number == owner

    part = windows.parts[number := max(range(len(windows.parts)), key=rate)]
    shift = windows.num_before - part.start
    return number, (max(first, part.start) + shift, min(last, part.stop - 1) + shift)


def _list_answers(prediction: Answer, encoded: Encoded) -> Iterator[Target]:
    """List the answer: that it begins and ends at its tokens, in the window where it was found.

    "No answer" is the same of [CLS] in the first window.
    """
    windows = cast("Windows", encoded.alignment)
    number, first, last = 0, 0, 0
    if prediction.start is not None and prediction.stop is not None:
        tokens = find_tokens(windows.offsets, (prediction.start, prediction.stop))
        assert tokens is not None, "an answer has a token"
        number, (first, last) = _find_window(windows, tokens)
    begin = sum(len(one.ids) for one in encoded.sequences[:number])
    stop = begin + len(encoded.sequences[number].ids)

    def score(logits: Scores) -> Scores:
        logs = logits[begin:stop] - _log_sum_exp(logits[begin:stop], axis=0)
        return _find_log_odds(_exp(logs[first, 0] + logs[last, 1]))

    yield Target(prediction.text or "no answer", score)
