"""What is explained of a prediction: a label, a number, an entity, an answer, each as a score."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.tasks.answer.scoring import Answer, Windows, find_tokens
from bertkit.tasks.batch import Encoded, Logits
from bertkit.tasks.classify.decoding import Classification
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.tag.decoding import Tagging
from bertkit.tasks.task import AnyTask, TaskPrediction

MAX_TARGETS = 10  # labels or entities of a text that are explained, the first
LEAST = 1e-12  # probability, so that log-odds are finite

Rows = npt.NDArray[np.int64]


class Target(NamedTuple):
    """What is explained."""

    name: str  # empty for a number
    # of the logits of an input, or of several of its forms: log-odds, or numbers
    score: Callable[[Float[Tensor, "*inputs rows outputs"]], Float[Tensor, "*inputs"]]

    def to_value(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the probabilities of log-odds; numbers as they are."""
        found: npt.NDArray[np.float64] = torch.as_tensor(scores).sigmoid().numpy()
        return found if self.name else scores


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
        found = iter([Target("", lambda logits: logits.mean(dim=(-2, -1)))])
    return [*islice(found, MAX_TARGETS)]


def _list_labels(task: Classify, prediction: Classification) -> Iterator[Target]:
    """List the labels that are given, or else the likeliest."""
    for label in prediction.labels or (prediction.label,):

        def score(logits: Tensor, place: int = task.labels.index(label)) -> Tensor:
            scores = logits.mean(dim=-2) / task.temperature  # over windows
            if task.settings.multi_label:
                return scores[..., place]
            others = torch.cat([scores[..., :place], scores[..., place + 1 :]], dim=-1)
            return scores[..., place] - others.logsumexp(dim=-1)

        yield Target(label, score)


def _list_entities(prediction: Tagging, encoded: Encoded, logits: Logits) -> Iterator[Target]:
    """List the entities; each has the mean probability of its words' tags."""
    _, rows = encoded.alignment
    for entity in prediction.entities:
        own = rows[entity.first_word : entity.stop_word]
        tags = logits[own].argmax(axis=-1)

        def score(logits: Tensor, own: Rows = own, tags: Rows = tags) -> Tensor:
            shares = logits[..., own, :].softmax(dim=-1)[..., range(len(own)), tags]
            return shares.mean(dim=-1).logit(LEAST)

        yield Target(f"{entity.type} {entity.text}", score)


def _list_answers(prediction: Answer, encoded: Encoded) -> Iterator[Target]:
    """List the answer: that it begins and ends at its tokens, in the window where it was found.

    "No answer" is the same of [CLS] in the first window.
    """
    windows = cast("Windows", encoded.alignment)
    number, first, last = 0, 0, 0
    if prediction.start is not None and prediction.stop is not None:
        tokens = find_tokens(windows.offsets, (prediction.start, prediction.stop))
        assert tokens is not None, "an answer has a token"
        number = int(windows.owners[tokens[0]])
        shift = windows.num_before - windows.parts[number].start
        first, last = tokens[0] + shift, tokens[1] + shift
    begin = sum(len(one.ids) for one in encoded.sequences[:number])
    stop = begin + len(encoded.sequences[number].ids)

    def score(logits: Tensor) -> Tensor:
        shares = logits[..., begin:stop, :].log_softmax(dim=-2)
        return (shares[..., first, 0] + shares[..., last, 1]).exp().logit(LEAST)

    yield Target(prediction.text or "no answer", score)
