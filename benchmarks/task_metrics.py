"""One ruler for all sides of the benchmarks of fine-tuning: bertkit's metrics, on plain answers.

The parity tests hold these metrics against the official scorers.
"""

from collections.abc import Sequence
from typing import Any

from bertkit.tasks.metrics.classification import accuracy, count_labels, matthews
from bertkit.tasks.metrics.entities import count_entities
from bertkit.tasks.metrics.texts import score_answers, total_squad


def measure(task: str, gold: Sequence[Any], found: Sequence[Any]) -> dict[str, float]:
    """Metrics of answers: labels, lists of tags, or texts."""
    if task == "answer":
        shares = total_squad(score_answers(found, gold, "1.1"), [True] * len(gold), "1.1")
        return {name: 100.0 * share for name, share in shares.items()}
    if task == "tag":
        return {"f1": float(count_entities(gold, found).by_type.pool().f1)}
    names = sorted({*gold, *found})
    numbers = {name: number for number, name in enumerate(names)}
    counts = count_labels(
        [numbers[name] for name in gold], [numbers[name] for name in found], len(names)
    )
    return {"accuracy": float(accuracy(counts)), "matthews": float(matthews(counts))}
