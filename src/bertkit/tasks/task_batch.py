"""The packed batch of examples that the training loop takes, and the loss of rows with a label."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor

from bertkit.nn.packing import PackedBatch
from bertkit.tasks.batch import IGNORED_LABEL, Encoded, pack_sequences
from bertkit.tasks.task import AnyTask
from bertkit.training.job import Scores


@dataclass(frozen=True)
class TaskBatch:
    """A packed batch of examples."""

    packed: PackedBatch
    labels: Shaped[Tensor, "rows *rest"]  # as in `Encoded`, concatenated over the examples
    num_sequences: tuple[int, ...]  # of each example
    numbers: tuple[int, ...]  # rows of the examples in their table, from 0; for messages

    @classmethod
    def collate(cls, encoded: Sequence[Encoded], numbers: Sequence[int]) -> Self:
        """Pack examples that have labels."""
        return cls(
            packed=PackedBatch.of(
                pack_sequences([*chain.from_iterable(one.sequences for one in encoded)])
            ),
            labels=torch.from_numpy(np.concatenate([one.label_rows for one in encoded])),
            num_sequences=tuple(len(one.sequences) for one in encoded),
            numbers=tuple(numbers),
        )

    @property
    def num_tokens(self) -> int:
        """Number of tokens; a packed batch has no padding."""
        return self.packed.num_tokens

    @cached_property
    def target_counts(self) -> dict[str, int]:
        """Number of targets that the loss is summed over: of numbers, the examples."""
        if self.labels.dim() > 1 or self.labels.is_floating_point():
            return {"task": len(self.num_sequences)}
        return {"task": int((self.labels != IGNORED_LABEL).sum())}

    def describe(self) -> str:
        """Return the examples' row numbers, for messages."""
        return ", ".join(map(str, self.numbers))

    def to(self, device: torch.device) -> Self:
        """Return the same batch on another device."""
        return replace(
            self,
            packed=self.packed.to(device),
            labels=self.labels.to(device, non_blocking=True),
        )


def score_rows(task: AnyTask, logits: Float[Tensor, "rows labels"], batch: TaskBatch) -> Scores:
    """Compute the cross-entropy over the rows that have a label."""
    del task
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32))
    loss = F.cross_entropy(scores, batch.labels, reduction="sum", ignore_index=IGNORED_LABEL)
    hits = (scores.detach().argmax(dim=-1) == batch.labels).sum()
    return Scores({"task": loss}, {"task": hits})


def pool_windows(
    logits: Float[Tensor, "sequences labels"], batch: TaskBatch
) -> Float[Tensor, "examples labels"]:
    """Average the logits over each example's windows, in float32 or wider."""
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if len(scores) == len(batch.num_sequences):
        return scores
    parts = torch.split(scores, list(batch.num_sequences))
    return torch.stack([part.mean(dim=0) for part in parts])
