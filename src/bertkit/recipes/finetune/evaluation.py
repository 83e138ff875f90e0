"""The final evaluation of the model: on the held-out examples, and against a baseline."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bertkit.base.errors import pluralize
from bertkit.recipes.finetune.job import FineTuningJob, decode_all
from bertkit.reports.text import format_metric, show
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.ranking import ComparedScoring
from bertkit.tasks.task import AnyTask, TaskPrediction

Metrics = dict[str, float]


@dataclass(frozen=True)
class FinalEvaluation:
    """The final evaluation of a model."""

    task: AnyTask  # with numbers such as a temperature fitted on the held-out examples
    predictions: list[TaskPrediction]
    evaluation: Evaluation
    before: Evaluation | None  # without temperature scaling; None if there is none
    baseline: Metrics  # of always predicting the most frequent label; empty without labels
    compared: ComparedScoring[Any, Any] | None = None  # None if no verdict is taken


def evaluate_model(
    job: FineTuningJob, fitted: Mapping[str, float] | None = None
) -> FinalEvaluation:
    """Evaluate a model on the held-out examples.

    `fitted` are the numbers of a model that is calibrated already; by default they are fitted.
    """
    plain, examples = job.task, job.data.dev.examples
    with job.machine.mixed_precision():
        task, predictions, unscaled = job.answer_held_out(fitted)
    scoring = task.score(examples, predictions)
    evaluation = scoring.evaluate()
    before = plain.score(examples, unscaled).evaluate() if unscaled else None
    baseline = measure_baseline(job)
    warnings: list[str | None] = [job.data.shared]
    labels = job.data.dev.counts.labels
    if list(labels.values()) == [len(examples)]:
        (label,) = labels
        warnings.append(
            f"all held-out examples have the label {show(label)!r}: metrics don't cover other"
            " labels; give examples of all labels with --dev"
        )
    if not math.isfinite(evaluation.metrics[plain.metric]):
        warnings.append(
            f"{plain.metric} isn't defined on {pluralize(len(examples), 'held-out example')}, so"
            " the held-out loss selected the best step; give more, and different ones, with --dev"
        )
    if not evaluation.warnings:  # such as that all predictions are alike, which says more
        warnings.append(compare_to_baseline(plain.metric, evaluation, baseline))
    evaluation = replace(evaluation, warnings=(*evaluation.warnings, *filter(None, warnings)))
    compared = scoring if isinstance(scoring, ComparedScoring) and scoring.examples else None
    return FinalEvaluation(task, predictions, evaluation, before, baseline, compared)


def measure_baseline(job: FineTuningJob) -> Metrics:
    """Measure a baseline that ignores the input: it scores labels by their training frequency."""
    task = job.task
    counts = job.data.train.counts
    if not counts.labels:
        return {}
    number = max(counts.num_examples, *counts.labels.values())
    found = np.array([counts.labels.get(label, 0) for label in task.labels], dtype=np.float32)
    # Smoothed log odds: above 0 for labels of more than half the examples.
    odds = np.log((found + 0.5) / (number - found + 0.5))
    examples, encoded = job.data.dev.examples, job.dev
    if task.scored == "sequence":  # all texts have the same scores and thus the same prediction
        predictions = decode_all(task, examples[:1], encoded[:1], [odds[None]]) * len(examples)
    else:
        logits = (np.broadcast_to(odds, (one.num_tokens, len(odds))) for one in encoded)
        predictions = decode_all(task, examples, encoded, logits)
    return dict(task.score(examples, predictions).metrics)


def compare_to_baseline(metric: str, evaluation: Evaluation, baseline: Metrics) -> str | None:
    """Return a warning if the model isn't better than the baseline."""
    value, least = evaluation.metrics.get(metric, math.nan), baseline.get(metric, math.nan)
    if value > least or math.isnan(least) or least >= 1.0:
        return None
    return (
        f"{metric} ({format_metric(metric, value)}) isn't above that of always predicting the"
        " most frequent label"
        f" ({format_metric(metric, least)}): the model has learned nothing; try more examples,"
        " more epochs, another"
        " learning rate or another seed"
    )
