"""Counts of empty, truncated and windowed inputs of predictions."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from bertkit.tasks.batch import Encoded
from bertkit.tasks.task import Task


@dataclass
class PredictionCounts:
    """Counts over the inputs of predictions.

    Attributes:
        inputs: all inputs.
        tokens: tokens that the model processed, including special tokens and overlaps of windows.
        empty: inputs without a token, such as white space; they are encoded as [CLS] [SEP].
        truncated: inputs of which a part was cut off.
        windowed: inputs that were split into several windows.
    """

    inputs: int = 0
    tokens: int = 0
    empty: int = 0
    truncated: int = 0
    windowed: int = 0

    def add(self, other: "PredictionCounts") -> None:
        """Add the counts of another object."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def count_encoded(task: Task[Any, Any], encoded: Sequence[Encoded]) -> PredictionCounts:
    """Count encoded examples of a task."""
    return PredictionCounts(
        inputs=len(encoded),
        tokens=sum(one.num_tokens for one in encoded),
        empty=sum(map(is_empty, encoded)),
        truncated=sum(one.is_cut for one in encoded),
        windowed=sum(task.sequence == "window" and len(one.sequences) > 1 for one in encoded),
    )


def is_empty(encoded: Encoded) -> bool:
    """Whether an example has only special tokens: [CLS], and [SEP] after each text."""
    return all(len(ids) == 2 + segments[-1] for ids, segments in encoded.sequences)
