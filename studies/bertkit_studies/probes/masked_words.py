"""Masked-word loss and accuracy of a model, on the same masks for every model."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bertkit.data.shards import ShardSet
from bertkit.models.bert.heads import BertForMaskedLM
from bertkit.recipes.pretrain.job import held_out_batches
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tasks.objectives.bert import MaskedObjective
from bertkit.training.device import choose_device
from bertkit.training.step import evaluate_batches


@dataclass(frozen=True)
class MaskedWords:
    """Held-out text with masked words.

    Attributes:
        shards: the text.
        settings: masking and length of the examples.
    """

    shards: ShardSet
    settings: PretrainSettings

    @cached_property
    def batches(self) -> list[Any]:
        """The masked batches, the same every time."""
        return held_out_batches(self.shards, self.shards.load_tokenizer(), self.settings)

    def measure(self, checkpoint: Path, device: str) -> dict[str, float]:
        """Return masked-word loss and accuracy of a checkpoint."""
        place = choose_device(device)
        model = BertForMaskedLM.from_pretrained(checkpoint).to(place)
        metrics = evaluate_batches(model, self.batches, MaskedObjective.loss, place)
        return {"masked_loss": metrics["mlm_loss"], "masked_accuracy": metrics["mlm_accuracy"]}
