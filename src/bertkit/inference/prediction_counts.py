"""What was odd about the inputs of a prediction."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from bertkit.tasks.batch import Encoded
from bertkit.tasks.task import Task


@dataclass
class PredictionCounts:
    """What was met among inputs.

    Attributes:
        inputs: all of them.
        tokens: those that the model read, special ones and overlaps of windows included.
        empty: inputs without a token, such as blanks; they are read as [CLS] [SEP].
        truncated: inputs of which a part was left out.
        windowed: inputs that were read in several windows.
    """

    inputs: int = 0
    tokens: int = 0
    empty: int = 0
    truncated: int = 0
    windowed: int = 0

    def add(self, other: "PredictionCounts") -> None:
        """Count what another one counted."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def count_encoded(task: Task[Any, Any], encoded: Sequence[Encoded]) -> PredictionCounts:
    """What some examples of a task were like."""
    return PredictionCounts(
        inputs=len(encoded),
        tokens=sum(one.num_tokens for one in encoded),
        empty=sum(map(is_empty, encoded)),
        truncated=sum(one.is_cut for one in encoded),
        windowed=sum(task.sequence == "window" and len(one.sequences) > 1 for one in encoded),
    )


def is_empty(encoded: Encoded) -> bool:
    """Whether an example has nothing but special tokens: [CLS], and [SEP] after each text."""
    return all(len(ids) == 2 + segments[-1] for ids, segments in encoded.sequences)
