"""The training loop's job of the task rerank: lists of bounded length, in parts of a step."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bertkit.base.errors import InputError, pluralize
from bertkit.base.progress import announce
from bertkit.recipes.finetune.job import FineTuningJob
from bertkit.tasks.batch import Encoded
from bertkit.tasks.task_batch import TaskBatch

MAX_PASSAGES = 16  # of a query in a step
PART_TOKENS = 8192  # of a micro-batch, about
DRAWING = 6  # the purpose of the random generator; part of its seed


class RerankJob(FineTuningJob):
    """Training a model of queries and passages."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        if len({value for one in self.data.train.examples for value in one.relevances}) == 1:
            way = "mine them with --negatives mine, or"
            negatives = getattr(self.data.task.settings, "negatives", None)
            if self.data.mined is not None and negatives != "file":
                way = "too few different ones were found among them to mine any;"
            raise InputError(
                f"{self.data.train.name}: all passages are equally relevant, and nothing can be"
                f" learned without others: {way} add them as a column `negative`, or as rows with"
                " the label 0"
            )
        num_long = sum(len(one.sequences) > MAX_PASSAGES for one in self.train)
        if num_long:
            announce(
                f"{self.data.train.name}: {pluralize(num_long, 'query', 'queries')} with more than"
                f" {MAX_PASSAGES} passages; so many are trained of each, drawn by the seed, the"
                " relevant ones first"
            )
        num_tokens = sum(self.thin(number).num_tokens for number in range(len(self.train)))
        step_tokens = num_tokens * self.settings.batch_size / len(self.train)
        self.num_micro_batches = max(self.settings.accumulate, round(step_tokens / PART_TOKENS))

    def thin(self, number: int) -> Encoded:
        """Return a training query with at most `MAX_PASSAGES`, up to half of them relevant."""
        encoded = self.train[number]
        if len(encoded.sequences) <= MAX_PASSAGES:
            return encoded
        assert encoded.labels is not None, "training examples have relevances"
        order = np.random.default_rng((self.settings.seed, DRAWING, number)).permutation(
            len(encoded.labels)
        )
        is_relevant = encoded.labels[order] > 0
        relevant, others = order[is_relevant], order[~is_relevant]
        num_others = min(len(others), max(MAX_PASSAGES // 2, MAX_PASSAGES - len(relevant)))
        chosen = np.sort([*relevant[: MAX_PASSAGES - num_others], *others[:num_others]])
        sequences = tuple(encoded.sequences[place] for place in chosen)
        return replace(encoded, sequences=sequences, labels=encoded.labels[chosen])

    def collate(self, examples: Sequence[int]) -> TaskBatch:
        """As in `FineTuningJob`."""
        return TaskBatch.collate([self.thin(number) for number in examples], examples)
