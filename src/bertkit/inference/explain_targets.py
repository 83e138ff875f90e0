"""What is explained of a prediction: a label, a number, an entity, an answer, each as a score."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple, cast

import numpy as np
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

Scores = Float[Tensor, "*inputs"]


class Target(NamedTuple):
    """What is explained."""

    name: str  # empty for a number
    # of the logits of an input, or of some of its changed forms: log-odds, or numbers
    score: Callable[[Float[Tensor, "*inputs rows outputs"]], Scores]

    def find_value(self, scores: Scores) -> Scores:
        """Return the probability of log-odds; a number as it is."""
        return scores.sigmoid() if self.name else scores


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
        place, is_multi = task.labels.index(label), task.settings.multi_label

        def score(logits: Tensor, place: int = place, is_multi: bool = is_multi) -> Tensor:
            scores = logits.mean(dim=-2) / task.temperature  # over windows
            if is_multi:
                return scores[..., place]
            others = torch.cat([scores[..., :place], scores[..., place + 1 :]], dim=-1)
            return scores[..., place] - others.logsumexp(dim=-1)

        yield Target(label, score)


def _list_entities(prediction: Tagging, encoded: Encoded, logits: Logits) -> Iterator[Target]:
    """List the entities; each has the mean probability of its words' tags."""
    _, rows = encoded.alignment
    for entity in prediction.entities:
        own = torch.from_numpy(rows[entity.first_word : entity.stop_word])
        tags = torch.from_numpy(np.argmax(logits[own.numpy()], axis=-1))[:, None]

        def score(logits: Tensor, own: Tensor = own, tags: Tensor = tags) -> Tensor:
            shares = logits[..., own.to(logits.device), :].softmax(dim=-1)
            index = tags.to(logits.device).expand(*shares.shape[:-1], 1)
            return shares.gather(-1, index).mean(dim=(-2, -1)).logit(LEAST)

        yield Target(f"{entity.type} {entity.text}", score)


def _list_answers(prediction: Answer, encoded: Encoded) -> Iterator[Target]:
    """Yield the answer: that it begins and ends at its tokens, in the window where it was found.

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
    sizes = [len(one.ids) for one in encoded.sequences]
    begin, size = sum(sizes[:number]), sizes[number]

    def score(logits: Tensor) -> Tensor:
        shares = logits[..., begin : begin + size, :].log_softmax(dim=-2)
        return (shares[..., first, 0] + shares[..., last, 1]).exp().logit(LEAST)

    yield Target(prediction.text or "no answer", score)
