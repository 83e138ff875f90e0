"""Scores of texts and pairs: what a classifier or a reranker says of each."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bertkit.serving.errors import EmptyError
from bertkit.serving.models import RAW
from bertkit.serving.service import RequestContext

Ranked = list[tuple[int, float]]


async def rank(
    call: RequestContext,
    model: str | None,
    query: str,
    texts: Sequence[str],
    *,
    is_raw: bool = False,
    truncate: bool | None = None,
) -> Ranked:
    """Return the place and the score of each text for a query, best first.

    A score is between 0 and 1, or with `is_raw` the model's own number.
    """
    if not texts:
        raise EmptyError("there are no texts; give at least one")
    pairs = [(query, text) for text in texts]
    found = await call.compute(model, "regress", pairs, truncate=truncate)
    scores = [one.value if is_raw else to_probability(one.value) for one in found]
    order = sorted(range(len(scores)), key=lambda index: (-scores[index], index))
    return [(index, scores[index]) for index in order]


def to_probability(logit: float) -> float:
    """Return the logistic function of a number."""
    return 0.5 + 0.5 * math.tanh(0.5 * logit)


async def score_labels(
    call: RequestContext,
    model: str | None,
    inputs: Sequence[Any],
    *,
    is_raw: bool,
    truncate: bool | None,
) -> list[list[dict[str, Any]]]:
    """Return the labels of each input with their scores, the highest first."""
    loaded = call.find(model, "classify", "regress")
    if "regress" in loaded.pipelines:
        found = await call.compute(model, "regress", inputs, truncate=truncate)
        (label,) = loaded.labels
        scores = [one.value if is_raw else to_probability(one.value) for one in found]
        return [[{"score": score, "label": label}] for score in scores]
    if is_raw:
        rows = await call.compute(model, "classify", inputs, RAW, truncate=truncate)
        scored = [zip(loaded.labels, np.mean(row, axis=0).tolist(), strict=True) for row in rows]
    else:
        found = await call.compute(model, "classify", inputs, truncate=truncate)
        scored = [one.probabilities.items() for one in found]
    return [
        [
            {"score": score, "label": label}
            for label, score in sorted(row, key=lambda one: one[1], reverse=True)
        ]
        for row in scored
    ]
