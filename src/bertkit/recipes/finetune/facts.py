"""The data shown in the report and the card of a fine-tuned model."""

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
    "num_undecodable": "rows with bytes that aren't UTF-8",
    "num_empty": "empty texts",
    "num_cut": "texts that were truncated",
    "num_in_windows": "texts read in windows",
    "num_unseen": "labels that the training data lacks",
}


@dataclass(frozen=True)
class FineTuningFacts:
    """The data shown in the report and the card.

    Attributes:
        name: name of the model's folder.
        record: the run's record: settings, data and source.
        judgment: the model's final evaluation.
        counts: counts of the sets `train` and `dev`.
        num_steps: number of training steps.
        best_epoch: the epoch, possibly fractional, of the best checkpoint.
        steps_per_epoch: number of steps in an epoch.
        has_ended_early: whether early stopping ended the run.
        comparison: comparison with the other runs of a search; None if there was no search.
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
        """The Hub id or folder name of the model that was fine-tuned, without parent folders."""
        model = str(self.record.settings["model"])
        return model if self.is_from_hub else model.rstrip("/").rpartition("/")[2]

    @property
    def is_from_hub(self) -> bool:
        """Whether the model was named by its Hub id; a folder in the Hub's cache doesn't count."""
        model = str(self.record.settings["model"])
        return bool(self.record.source.get("commit")) and is_hub_id(model)

    @property
    def is_for_transformers(self) -> bool:
        """Whether transformers can load the model and computes the same."""
        settings = self.record.settings
        has_their_head = (
            settings.get("features") != "bilstm" and settings.get("feature_layers") != "last_four"
        )
        return has_their_head and not self.pools_last

    @property
    def pools_last(self) -> bool:
        """Whether the last token represents the text, as a left-to-right model requires."""
        is_causal = bool(self.record.model.get("is_decoder"))
        return is_causal and self.judgment.task.row == "sequence"

    @property
    def has_picture(self) -> bool:
        """Whether there is a confusion matrix that is small enough to draw."""
        matrix = draw_confusion(self.judgment.evaluation)
        return matrix is not None and matrix.draw() is not None

    @property
    def settings(self) -> dict[str, str]:
        """The settings, without names of files and folders."""
        return {
            name: "none" if value is None else str(value)
            for name, value in self.record.settings.items()
            if name not in {"task", "model", "revision"}
        }


def count_rows(counts: Mapping[str, SetCounts]) -> list[tuple[str, Any, Any]]:
    """Return rows (description, training count, held-out count) of the counts that aren't 0."""
    train, dev = counts["train"], counts["dev"]
    rows = [(words, getattr(train, key), getattr(dev, key)) for key, words in COUNT_NAMES.items()]
    return [row for row in rows if row[1] or row[2]]
