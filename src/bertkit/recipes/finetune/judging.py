"""The finished model, held against the held-out examples and against the simplest guess."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bertkit.recipes.finetune.examples import SetCounts
from bertkit.recipes.finetune.job import Materials, decode_all, held_out_logits
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.logits import Logits
from bertkit.tasks.task import Task
from bertkit.training.device import mixed_precision

Metrics = dict[str, float]


@dataclass(frozen=True)
class Judgement:
    """What a model is worth.

    Attributes:
        task: with the numbers that were found on the held-out examples.
        predictions: for the held-out examples.
        evaluation: of those.
        before: the same without their temperature; None where none was found.
        baseline: metrics of always saying the most frequent label; empty without labels.
    """

    task: Task[Any, Any]
    predictions: list[Any]
    evaluation: Evaluation
    before: Evaluation | None
    baseline: Metrics


def judge(materials: Materials) -> Judgement:
    """Hold a model against its held-out examples."""
    plain, examples, encoded = materials.task, materials.dev_examples, materials.dev
    with mixed_precision(materials.machine.device, materials.machine.precision):
        logits = held_out_logits(materials)
    task = plain.fit_numbers(examples, encoded, logits)
    predictions = decode_all(task, examples, encoded, logits)
    evaluation = task.evaluate(examples, predictions)
    before = None
    if task.temperature != plain.temperature:
        before = plain.evaluate(examples, decode_all(plain, examples, encoded, logits))
    baseline = measure_baseline(materials)
    found = (
        find_only_label(materials.counts["dev"]),
        compare_to_baseline(plain.metric, evaluation, baseline),
    )
    warnings = [warning for warning in found if warning is not None]
    evaluation = replace(evaluation, warnings=(*evaluation.warnings, *warnings))
    return Judgement(
        task=task,
        predictions=predictions,
        evaluation=evaluation,
        before=before,
        baseline=baseline,
    )


def measure_baseline(materials: Materials) -> Metrics:
    """Metrics of a model that doesn't read: each label as likely as it is in training."""
    task = materials.task
    if not materials.counts["train"].labels:
        return {}
    odds = _log_odds(task.labels, materials.counts["train"])
    logits = [
        np.tile(odds, (one.num_tokens if task.row == "token" else len(one.sequences), 1))
        for one in materials.dev
    ]
    predictions = decode_all(task, materials.dev_examples, materials.dev, logits)
    return task.measure(materials.dev_examples, predictions)


def _log_odds(labels: tuple[str, ...], counts: SetCounts) -> Logits:
    """Larger for more frequent labels, and above 0 for those that more than half have."""
    number = max(counts.num_examples, *counts.labels.values())
    found = np.array([counts.labels.get(label, 0) for label in labels], dtype=np.float32)
    odds: Logits = np.log((found + 0.5) / (number - found + 0.5))
    return odds


def compare_to_baseline(metric: str, evaluation: Evaluation, baseline: Metrics) -> str | None:
    """Say it where a model isn't better than one that doesn't read."""
    value, least = evaluation.metrics.get(metric, math.nan), baseline.get(metric, math.nan)
    if value > least or math.isnan(least) or least >= 1.0:
        return None
    return (
        f"{metric} ({value:.4f}) isn't above that of always saying the most frequent label"
        f" ({least:.4f}): the model has learnt nothing; try more epochs, another learning rate or"
        " another seed"
    )


def find_only_label(dev: SetCounts) -> str | None:
    """Say it where all held-out examples have one label, as a share of a few may."""
    if list(dev.labels.values()) != [dev.num_examples]:
        return None
    (label,) = dev.labels
    return (
        f"all held-out examples have the label {label!r}: their metrics say nothing of other"
        " labels; give examples of all with --dev"
    )
