"""How well a model fills blanks, the same ones whatever it was trained on."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bertkit.data.shards import ShardSet
from bertkit.hardware.device import choose_device
from bertkit.models.bert.heads import BertForMaskedLM
from bertkit.objectives.mlm import MaskedObjective
from bertkit.recipes.pretrain.job import held_out_batches
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.training.step import evaluate_batches


@dataclass(frozen=True)
class MaskedWords:
    """Held-out text with blanks.

    Attributes:
        shards: the text.
        settings: how it is masked, and the length of its examples.
    """

    shards: ShardSet
    settings: PretrainSettings

    @cached_property
    def batches(self) -> list[Any]:
        """The blanks, the same ones every time."""
        return held_out_batches(self.shards, self.shards.load_tokenizer(), self.settings)

    def measure(self, checkpoint: Path, device: str) -> dict[str, float]:
        """Loss and accuracy of a model with a head for masked words."""
        place = choose_device(device)
        model = BertForMaskedLM.from_pretrained(checkpoint).to(place)
        metrics = evaluate_batches(model, self.batches, MaskedObjective.score, place)
        return {"masked_loss": metrics["mlm_loss"], "masked_accuracy": metrics["mlm_accuracy"]}
