"""Reranking: a model that reads query and passage together orders the best hits anew."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bertkit.base.errors import CheckpointError
from bertkit.inference.predictor import AnyPredictor, Predictor
from bertkit.inference.settings import EngineSettings
from bertkit.retrieval.hits import Hit
from bertkit.tasks.classify.decoding import Classification
from bertkit.tasks.regress.task import Regression


def load_reranker(model: str | Path | AnyPredictor) -> AnyPredictor:
    """Load a model of pairs, of `bertkit finetune` or a CrossEncoder, or take one that is loaded.

    Raises:
        CheckpointError: the model's task isn't regress, or classify with two labels.
        InputError: it takes no pairs.
    """
    predictor: AnyPredictor = Predictor.take(model, EngineSettings())
    task = predictor.task
    if task.name != "regress" and (task.name, len(task.labels)) != ("classify", 2):
        raise CheckpointError(
            f"{model} is a model for {task.name} with {len(task.labels)} labels, and reranking"
            " takes one that gives a pair a number, or one of two labels; make one with `bertkit"
            " finetune regress`"
        )
    predictor.loaded.check_pairs()
    return predictor


def rerank(predictor: AnyPredictor, query: str, hits: Sequence[Hit]) -> list[Hit]:
    """Order hits by the model's value, the highest first; equal ones keep their order.

    That of two labels is the difference of their logits, the second minus the first: probabilities
    of large logits are all rounded to 1.
    """

    def find_value(found: Regression | Classification) -> float:
        if isinstance(found, Regression):
            return found.value
        assert found.logits is not None
        return float(found.logits[1] - found.logits[0])

    values = map(find_value, predictor([(query, hit.text) for hit in hits]))
    scored = [
        replace(hit, score=value, reranked=value) for hit, value in zip(hits, values, strict=True)
    ]
    return sorted(scored, key=lambda hit: -hit.score)
