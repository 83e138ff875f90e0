"""The masked language model objective: BERT's without next sentence prediction.

Examples are like BERT's, except that B always follows A. A document of one sentence is an example
without B.

Source: Devlin et al. 2018, section 5.1 ("No NSP"); Liu et al. 2019, "RoBERTa", section 4.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from bertkit.data.order import PlannedExample
from bertkit.models.bert.heads import BertForMaskedLM
from bertkit.objectives.masked_pairs import MaskedBatch, MaskedPairs
from bertkit.training.job import Scores


@final
@dataclass(frozen=True)
class MaskedObjective(MaskedPairs[MaskedBatch]):
    """Predicts masked words of contiguous text."""

    model_kind = BertForMaskedLM
    batch_kind = MaskedBatch
    shares = MappingProxyType({"mlm_accuracy": "masked acc."})
    has_random_pairs = False

    def batch(self, examples: Sequence[PlannedExample]) -> MaskedBatch:
        """Concatenate examples, `[CLS] A [SEP] B [SEP]`, and mask them."""
        return self.corrupt(examples)

    @staticmethod
    def score(model: BertForMaskedLM, batch: MaskedBatch) -> Scores:
        """Compute the loss of a batch, in float32 whatever the model's precision."""
        loss, num_hits = model.masked_loss(batch.packed, batch.positions, batch.labels)
        return Scores(losses={"mlm": loss}, hits={"mlm": num_hits})
