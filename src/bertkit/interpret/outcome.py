"""What a model of any kind says of a passage, and how far two such outcomes are apart.

All of it comes from one pass of the model's own encoder, so that a head that is switched off by
`ablate` shows. A passage is always read whole, as it is shown, also where the model's task would
cut a long text or read it in windows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import NonFiniteError
from bertkit.inference.engines.choice import find_device
from bertkit.interpret.head_predictions import HeadPrediction, head_scores, judge
from bertkit.interpret.inspected_model import EncodedText, InspectedModel

NUMBERS = {"regress", "choose"}  # tasks whose heads give a number
TOP_CHOICES = 5
DIGITS = 6


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a model makes of a passage.

    Attributes:
        tokens: the vector of each token, T_i.
        judgments: what the model's head decides, the most telling first; none of a plain encoder,
            and none of a model that takes sentences for summaries.
        number: that a regression gives, or the score of one of several choices.
    """

    tokens: Float[Tensor, "length hidden"]
    judgments: tuple[HeadPrediction, ...] = ()
    number: Float[Tensor, ""] | None = None

    @property
    def vector(self) -> Float[Tensor, " hidden"]:
        """The mean of the tokens' vectors."""
        return self.tokens.mean(dim=0)

    @property
    def loss(self) -> Float[Tensor, ""] | None:
        """What the gradient of heads is of; None where nothing is said, as of a plain encoder.

        It is −log p of what the model itself said, or the number itself.
        """
        return self.judgments[0].surprise if self.judgments else self.number


@dataclass(frozen=True)
class Change:
    """How far one outcome is from an earlier one.

    Attributes:
        probability: of what was said at first: the later one minus the earlier, from −1 to 1, in
            the mean over the decisions of the first judgment; None where nothing is decided.
        number: the later one minus the earlier; None where there is none.
        vector: cosine distance of the mean vectors, from 0 to 2.
        tokens: how far the tokens' vectors moved, each as a share of its length, in the mean.
    """

    probability: float | None
    number: float | None
    vector: float
    tokens: float

    @property
    def main(self) -> float:
        """The first of them that there is."""
        known = (value for value in (self.probability, self.number) if value is not None)
        return next(known, self.vector)


def find_outcome(subject: InspectedModel, passage: EncodedText) -> Outcome:
    """Run the model once.

    Gradients are recorded where the caller has them recorded.
    """
    batch = passage.pack().to(find_device(subject.model))
    states = list(subject.model.encoder.hidden_states(batch))
    if not states[-1].isfinite().all():
        raise NonFiniteError(
            f"{subject.name} gives hidden states that aren't finite; see `bertkit inspect`"
        )
    number = None
    if subject.task is not None and subject.task.name in NUMBERS:
        number = head_scores(subject, passage, states).flatten()[0]
    return Outcome(states[-1].float(), judge(subject, passage, states), number)


def compare(before: Outcome, after: Outcome) -> Change:
    """How far an outcome is from an earlier one of the same passage."""
    probability = number = None
    if before.judgments:
        first, second = before.judgments[0], after.judgments[0]
        change = second.probabilities_of(first.said) - first.probabilities_of(first.said)
        probability = float(change.mean())
    if before.number is not None and after.number is not None:
        number = float(after.number - before.number)
    lengths = before.tokens.norm(dim=-1).clamp_min(torch.finfo(before.tokens.dtype).tiny)
    moved = (after.tokens - before.tokens).norm(dim=-1) / lengths
    turned = _cosine_distance(before.vector, after.vector)
    return Change(probability, number, turned, float(moved.mean()))


def _cosine_distance(first: Float[Tensor, " hidden"], second: Float[Tensor, " hidden"]) -> float:
    """1 − cosine, by the distance of the unit vectors: exact also where they are nearly equal."""
    directions = [F.normalize(vector.double(), dim=0) for vector in (first, second)]
    return float((directions[0] - directions[1]).square().sum() / 2)


def to_json(outcome: Outcome, before: Outcome | None = None) -> dict[str, Any]:
    """An outcome as plain data.

    Args:
        outcome: what is told.
        before: an earlier one of the same passage: the probability of what it said is told too.
    """
    earlier: Sequence[HeadPrediction | None] = (
        before.judgments if before else (None,) * len(outcome.judgments)
    )
    pairs = zip(outcome.judgments, earlier, strict=True)
    return {
        "judgments": [_judgment_to_json(judgment, first) for judgment, first in pairs],
        "number": None if outcome.number is None else round_digits(float(outcome.number)),
    }


def _judgment_to_json(judgment: HeadPrediction, before: HeadPrediction | None) -> dict[str, Any]:
    shares = judgment.log_probabilities.detach().exp()
    best = shares.topk(min(TOP_CHOICES, shares.shape[1]))
    rows = zip(
        judgment.about,
        judgment.places,
        judgment.said.tolist(),
        judgment.probabilities_of(judgment.said).tolist(),
        judgment.probabilities_of((before or judgment).said).tolist(),
        zip(best.indices.tolist(), best.values.tolist(), strict=True),
        strict=True,
    )
    decisions = [
        {
            "about": about,
            "token": place,
            "said": judgment.choices[said],
            "probability": round_digits(probability),
            "kept": round_digits(kept),  # the probability of what was said before
            "likeliest": [
                [judgment.choices[choice], round_digits(share)]
                for choice, share in zip(*likeliest, strict=True)
            ],
        }
        for about, place, said, probability, kept, likeliest in rows
    ]
    return {"question": judgment.question, "answer": judgment.answer, "decisions": decisions}


def round_digits(value: float) -> float:
    """A number with as many digits as people can use, so that pages stay small."""
    return float(f"{value:.{DIGITS}g}")
