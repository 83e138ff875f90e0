"""What the report and the card of a fine-tuned model tell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bertkit.checkpoints.hub.resolve import is_hub_id
from bertkit.recipes.finetune.evaluation import FinalEvaluation
from bertkit.recipes.finetune.examples import SetCounts
from bertkit.recipes.finetune.search.comparison import Comparison
from bertkit.tasks.sections import draw_confusion
from bertkit.training.run import RunRecord

COUNT_NAMES = {
    "num_examples": "examples",
    "num_broken": "broken rows, left out",
    "num_undecodable": "rows with what isn't UTF-8",
    "num_empty": "empty texts",
    "num_cut": "texts that were cut",
    "num_in_windows": "texts read in windows",
    "num_unseen": "labels that training doesn't have",
}


@dataclass(frozen=True)
class FineTuningFacts:
    """All of it.

    Attributes:
        name: of the model's folder.
        record: what the run was begun with.
        judgment: what the model is worth.
        counts: what was met in `train` and `dev`.
        num_steps: that were trained.
        best_epoch: how often the model had seen every example.
        steps_per_epoch: steps in which it sees all of them.
        has_ended_early: whether nothing had become better for long enough.
        comparison: with the other runs of a search; None where there was none.
    """

    name: str
    record: RunRecord
    judgment: FinalEvaluation
    counts: Mapping[str, SetCounts]
    num_steps: int
    best_epoch: float
    steps_per_epoch: int
    has_ended_early: bool
    comparison: Comparison | None = None

    @property
    def task(self) -> str:
        """The task's name."""
        return self.judgment.task.name

    @property
    def parent(self) -> str:
        """The name of the model that was fine-tuned, without the folders it lies in."""
        model = str(self.record.settings["model"])
        return model if self.is_from_hub else model.rstrip("/").rpartition("/")[2]

    @property
    def is_from_hub(self) -> bool:
        """Whether the model was named by its id; a folder of the Hub's cache has a commit too."""
        model = str(self.record.settings["model"])
        return bool(self.record.source.get("commit")) and is_hub_id(model)

    @property
    def is_for_transformers(self) -> bool:
        """Whether transformers knows such a model, and computes the same."""
        settings = self.record.settings
        has_their_head = (
            settings.get("features") != "bilstm" and settings.get("feature_layers") != "last_four"
        )
        return has_their_head and not self.pools_last

    @property
    def pools_last(self) -> bool:
        """Whether the last token stands for a text, as left to right it must."""
        is_causal = bool(self.record.model.get("is_decoder"))
        return is_causal and self.judgment.task.row == "sequence"

    @property
    def has_picture(self) -> bool:
        """Whether the confusion matrix is small enough to be drawn."""
        matrix = draw_confusion(self.judgment.evaluation)
        return matrix is not None and matrix.draw() is not None

    @property
    def settings(self) -> dict[str, str]:
        """What was chosen, but for names of files and folders."""
        return {
            name: "none" if value is None else str(value)
            for name, value in self.record.settings.items()
            if name not in {"task", "model", "revision"}
        }


def count_rows(counts: Mapping[str, SetCounts]) -> list[tuple[str, Any, Any]]:
    """What was met, in training and in held-out examples; only what was met at all."""
    train, dev = counts["train"], counts["dev"]
    rows = [(words, getattr(train, key), getattr(dev, key)) for key, words in COUNT_NAMES.items()]
    return [row for row in rows if row[1] or row[2]]
