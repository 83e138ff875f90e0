"""The data shown in the report and the card of a fine-tuned model."""

from collections.abc import Mapping
from dataclasses import dataclass

from bertkit.models.bert.config import FEATURE_HEAD, BertConfig
from bertkit.models.bert.sentence_modules import has_modules
from bertkit.recipes.finetune.evaluation import FinalEvaluation
from bertkit.recipes.finetune.examples import SetCounts
from bertkit.recipes.finetune.search.comparison import Comparison
from bertkit.recipes.model_card import LibraryName, ModelFacts
from bertkit.tasks.sections import draw_confusion

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
class FineTuningFacts(ModelFacts):
    """The data shown in the report and the card.

    Attributes:
        final: the model's final evaluation.
        counts: counts of the sets `train` and `dev`.
        num_steps: number of training steps.
        best_epoch: the epoch, possibly fractional, of the best checkpoint.
        steps_per_epoch: number of steps in an epoch.
        has_ended_early: whether early stopping ended the run.
        comparison: comparison with the other runs of a search; None if there was no search.
    """

    final: FinalEvaluation
    counts: Mapping[str, SetCounts]
    num_steps: int
    best_epoch: float
    steps_per_epoch: int
    has_ended_early: bool
    comparison: Comparison | None = None

    @property
    def task(self) -> str:
        """The task's name."""
        return self.final.task.name

    @property
    def library(self) -> LibraryName:
        """The library, other than bertkit if there is one, that computes the same."""
        if has_modules(BertConfig.from_dict(self.record.model, self.name)):
            return "sentence-transformers"
        is_own = FEATURE_HEAD in self.record.model or self.pools_last
        return "bertkit" if is_own else "transformers"

    @property
    def pools_last(self) -> bool:
        """Whether the last token represents the text, as a left-to-right model requires."""
        is_causal = bool(self.record.model.get("is_decoder"))
        return is_causal and self.final.task.row == "sequence"

    @property
    def has_picture(self) -> bool:
        """Whether there is a confusion matrix that is small enough to draw."""
        matrix = draw_confusion(self.final.evaluation)
        return matrix is not None and matrix.draw() is not None
