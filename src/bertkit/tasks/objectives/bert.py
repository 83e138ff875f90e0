"""BERT's objective: masked language model and next sentence prediction, trained jointly.

Source: Devlin et al. 2018, section 3.1 and appendix A.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from bertkit.data.order import PlannedExample
from bertkit.models.bert.architectures import IS_NEXT, NOT_NEXT
from bertkit.models.bert.heads import BertForMaskedLM, BertForPreTraining
from bertkit.tasks.objectives.masked_pairs import IS_RANDOM, MaskedBatch, MaskedPairs
from bertkit.training.job import Scores


@final
@dataclass(frozen=True)
class PreTrainingBatch(MaskedBatch):
    """A masked batch of sentence pairs with its targets."""

    next_sentence_labels: Int[Tensor, " sequences"]  # 0 where B follows A, 1 where it doesn't

    @property
    def target_counts(self) -> dict[str, int]:
        """Number of targets that each loss is summed over."""
        return {"mlm": len(self.labels), "nsp": len(self.next_sentence_labels)}


@final
@dataclass(frozen=True)
class BertObjective(MaskedPairs[PreTrainingBatch]):
    """Predicts masked words, and whether B follows A."""

    model_kind = BertForPreTraining
    batch_kind = PreTrainingBatch
    progress_metrics = MappingProxyType(
        {"mlm_accuracy": "masked acc.", "nsp_accuracy": "next-sentence acc."}
    )
    has_random_pairs = True

    def batch(self, examples: Sequence[PlannedExample]) -> PreTrainingBatch:
        """Concatenate examples, `[CLS] A [SEP] B [SEP]`, and mask them."""
        masked = self.corrupt(examples)
        is_random = np.array([example.row[IS_RANDOM] for example in examples])
        return PreTrainingBatch(
            packed=masked.packed,
            positions=masked.positions,
            labels=masked.labels,
            keys=masked.keys,
            next_sentence_labels=torch.from_numpy(np.where(is_random == 1, NOT_NEXT, IS_NEXT)),
        )

    @staticmethod
    def loss(model: BertForPreTraining, batch: PreTrainingBatch) -> Scores:
        """Compute both losses of a batch, in float32 whatever the model's precision."""
        words, num_correct, relations = model.masked_loss_and_relations(
            batch.packed, batch.positions, batch.labels
        )
        is_next = batch.next_sentence_labels
        return Scores(
            losses={
                "mlm": words,
                "nsp": F.cross_entropy(relations.float(), is_next, reduction="sum"),
            },
            correct={
                "mlm": num_correct,
                "nsp": (relations.detach().argmax(dim=-1) == is_next).sum(),
            },
        )


@final
@dataclass(frozen=True)
class MaskedObjective(MaskedPairs[MaskedBatch]):
    """Predicts masked words of contiguous text."""

    model_kind = BertForMaskedLM
    batch_kind = MaskedBatch
    progress_metrics = MappingProxyType({"mlm_accuracy": "masked acc."})
    has_random_pairs = False

    def batch(self, examples: Sequence[PlannedExample]) -> MaskedBatch:
        """Concatenate examples, `[CLS] A [SEP] B [SEP]`, and mask them."""
        return self.corrupt(examples)

    @staticmethod
    def loss(model: BertForMaskedLM, batch: MaskedBatch) -> Scores:
        """Compute the loss of a batch, in float32 whatever the model's precision."""
        loss, num_correct = model.masked_loss(batch.packed, batch.positions, batch.labels)
        return Scores(losses={"mlm": loss}, correct={"mlm": num_correct})
