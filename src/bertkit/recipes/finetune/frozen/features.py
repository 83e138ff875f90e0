"""Trains a BiLSTM on hidden states of a frozen encoder, which are computed once.

Source: Devlin et al. 2018, section 5.3.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.files import make_folder, remove_folder
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.nn.packing import PackedBatch
from bertkit.recipes.finetune.frozen.state_file import StateFile, write_states
from bertkit.recipes.finetune.job import FineTuningContext, measure_held_out
from bertkit.tasks.batch import TaskBatch, batch_tensors
from bertkit.tasks.logits import Logits
from bertkit.training.job import Job, Scores

STATES_FOLDER = "states"
EXAMPLES_AT_ONCE = 32  # batch size of an evaluation


class States(NamedTuple):
    """The hidden states of the training and the held-out examples."""

    train: StateFile
    dev: StateFile


@dataclass(frozen=True)
class StateBatch:
    """A batch of examples with their hidden states.

    Attributes:
        examples: the examples, for the loss.
        states: the hidden states, the head's input.
        tokens: the tokens that the states belong to.
    """

    examples: TaskBatch
    states: Float[Tensor, "tokens features"]
    tokens: PackedBatch

    @property
    def num_tokens(self) -> int:
        """Number of tokens in the examples."""
        return self.examples.num_tokens

    @property
    def target_counts(self) -> dict[str, int]:
        """Number of labels that the loss is summed over."""
        return self.examples.target_counts

    def describe(self) -> str:
        """Return the examples' numbers, for messages."""
        return self.examples.describe()

    def to(self, device: torch.device) -> Self:
        """Return the batch on another device."""
        return replace(
            self,
            examples=self.examples.to(device),
            states=self.states.to(device),
            tokens=self.tokens.to(device),
        )


@contextmanager
def remember_states(run: Path, context: FineTuningContext) -> Iterator[States]:
    """Compute the hidden states of all examples, in files that are removed at the end."""
    folder, model = run / STATES_FOLDER, context.model
    remove_folder(folder)  # left by a killed process
    make_folder(folder)
    try:
        train, dev = (
            write_states(folder / name, model, encoded, context.machine, summarized=False)
            for name, encoded in (("train", context.train), ("dev", context.dev))
        )
        yield States(train, dev)
    finally:
        remove_folder(folder)


def build_feature_job(
    job: Job[TaskBatch], context: FineTuningContext, states: States
) -> Job[StateBatch]:
    """Return the job with steps and evaluations that compute only the head."""
    model = context.model
    num_trained = sum(each.numel() for each in model.parameters() if each.requires_grad)

    def batches_at(step: int) -> list[StateBatch]:
        parts = job.batches_at(step)
        return [StateBatch(part, *states.train.read(part.numbers)) for part in parts]

    def score(model: FineTunedBert, batch: StateBatch) -> Scores:
        return context.task.loss(model.head_scores(batch.states, batch.tokens), batch.examples)

    return Job(
        model=model,
        batches_at=batches_at,
        score=score,
        evaluate=lambda: measure_held_out(
            context, lambda part: head_logits(context, states.dev, part)
        ),
        count_operations=lambda batch: 6.0 * num_trained * len(batch.states),
        save_model=job.save_model,
        save_architecture=job.save_architecture,
        batch_tensors=lambda batch: batch_tensors(batch.examples),
        shares=job.shares,
        watched=job.watched,
    )


@torch.inference_mode()
def head_logits(context: FineTuningContext, states: StateFile, part: range) -> list[Logits]:
    """Compute logits of some held-out examples from their hidden states, without dropout."""
    model, device = context.model.eval(), context.machine.device
    found: list[Logits] = []
    for start in range(0, len(part), EXAMPLES_AT_ONCE):
        numbers = part[start : start + EXAMPLES_AT_ONCE]
        chosen = [context.dev[number] for number in numbers]
        rows, tokens = states.read(numbers)
        logits = model.head_scores(rows.to(device), tokens.to(device)).float().cpu().numpy()
        is_token = context.task.row == "token"
        sizes = [one.num_tokens if is_token else len(one.sequences) for one in chosen]
        found += np.split(logits, list(accumulate(sizes))[:-1])
    return found
