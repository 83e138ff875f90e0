"""The output of any model on a text, and the difference of two such outputs.

The output comes from one pass of the model's own encoder, so `ablate` affects it. The text is
always read whole, as shown, even where the model's task would truncate a long text or split it into
windows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from bertkit.inference.engines.choice import find_device
from bertkit.interpret.head_predictions import HeadPrediction, head_scores, predict_with_heads
from bertkit.interpret.inspected_model import EncodedText, InspectedModel, check_finite

TOP_CHOICES = 5
DIGITS = 6


@dataclass(frozen=True, eq=False)
class Outcome:
    """The output of a model on a text.

    Attributes:
        tokens: the last hidden state of each token, T_i.
        predictions: the decisions of the model's head, the most relevant first; empty for a plain
            encoder and for extractive summarization.
        number: the value that a regression predicts, or the score of one of several choices.
    """

    tokens: Float[Tensor, "length hidden"]
    predictions: tuple[HeadPrediction, ...] = ()
    number: Float[Tensor, ""] | None = None

    @property
    def vector(self) -> Float[Tensor, " hidden"]:
        """The mean of the tokens' vectors."""
        return self.tokens.mean(dim=0)

    @property
    def loss(self) -> Float[Tensor, ""] | None:
        """The scalar to differentiate by head gates; None if there is none (a plain encoder).

        It is −log p of the model's own prediction, or the number itself.
        """
        return self.predictions[0].loss if self.predictions else self.number


@dataclass(frozen=True)
class Change:
    """The difference between an outcome and an earlier one.

    Attributes:
        probability: of the earlier predictions: later minus earlier, from −1 to 1, averaged over
            the decisions of the first prediction; None if there is none.
        number: later minus earlier; None if there is no number.
        vector: the cosine distance of the mean vectors, from 0 to 2.
        tokens: the mean distance between a token's two vectors, relative to the earlier norm.
    """

    probability: float | None
    number: float | None
    vector: float
    tokens: float

    @property
    def main(self) -> float:
        """The change of probability if there is one, else of the number, else of the vector."""
        known = (value for value in (self.probability, self.number) if value is not None)
        return next(known, self.vector)


def find_outcome(inspected: InspectedModel, encoded: EncodedText) -> Outcome:
    """Run the model once; gradients are recorded if the caller enables them."""
    batch = encoded.pack().to(find_device(inspected.model))
    states = list(inspected.model.encoder.hidden_states(batch))
    check_finite(states[-1], f"{inspected.name} gives hidden states")
    number = None
    if inspected.task is not None and inspected.task.head_output == "number":
        number = head_scores(inspected, encoded, states).flatten()[0]
    return Outcome(states[-1].float(), predict_with_heads(inspected, encoded, states), number)


def compare(before: Outcome, after: Outcome) -> Change:
    """Compare an outcome with an earlier one of the same text."""
    probability = number = None
    if before.predictions:
        first, second = before.predictions[0], after.predictions[0]
        change = second.probabilities_of(first.predicted) - first.probabilities_of(first.predicted)
        probability = float(change.mean())
    if before.number is not None and after.number is not None:
        number = float(after.number - before.number)
    lengths = before.tokens.norm(dim=-1).clamp_min(torch.finfo(before.tokens.dtype).tiny)
    moved = (after.tokens - before.tokens).norm(dim=-1) / lengths
    turned = _cosine_distance(before.vector, after.vector)
    return Change(probability, number, turned, float(moved.mean()))


def _cosine_distance(first: Float[Tensor, " hidden"], second: Float[Tensor, " hidden"]) -> float:
    """Return 1 − cosine from the distance of the unit vectors, exact for nearly equal vectors."""
    directions = [F.normalize(vector.double(), dim=0) for vector in (first, second)]
    return float((directions[0] - directions[1]).square().sum() / 2)


def to_json(outcome: Outcome, before: Outcome | None = None) -> dict[str, Any]:
    """Convert an outcome to plain data.

    Args:
        outcome: the outcome.
        before: an earlier outcome of the same text, to add the probability of its predictions.
    """
    earlier: Sequence[HeadPrediction | None] = (
        before.predictions if before else (None,) * len(outcome.predictions)
    )
    pairs = zip(outcome.predictions, earlier, strict=True)
    return {
        "judgments": [_prediction_to_json(prediction, first) for prediction, first in pairs],
        "number": None if outcome.number is None else round_digits(float(outcome.number)),
    }


def _prediction_to_json(
    prediction: HeadPrediction, before: HeadPrediction | None
) -> dict[str, Any]:
    shares = prediction.log_probabilities.detach().exp()
    best = shares.topk(min(TOP_CHOICES, shares.shape[1]))
    rows = zip(
        prediction.about,
        prediction.places,
        prediction.predicted.tolist(),
        prediction.probabilities_of(prediction.predicted).tolist(),
        prediction.probabilities_of((before or prediction).predicted).tolist(),
        zip(best.indices.tolist(), best.values.tolist(), strict=True),
        strict=True,
    )
    decisions = [
        {
            "about": about,
            "token": place,
            "said": prediction.choices[predicted],
            "probability": round_digits(probability),
            "kept": round_digits(kept),  # probability of the earlier prediction
            "likeliest": [
                [prediction.choices[choice], round_digits(share)]
                for choice, share in zip(*likeliest, strict=True)
            ],
        }
        for about, place, predicted, probability, kept, likeliest in rows
    ]
    return {"question": prediction.question, "answer": prediction.answer, "decisions": decisions}


def round_digits(value: float) -> float:
    """Round to a few significant digits, so that pages stay small."""
    return float(f"{value:.{DIGITS}g}")
