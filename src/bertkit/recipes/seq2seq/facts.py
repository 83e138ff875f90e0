"""The data shown in the report and the card of an encoder-decoder."""

from dataclasses import dataclass
from typing import Any

from bertkit.models.seq2seq.config import EncoderDecoderConfig
from bertkit.recipes.model_card import ModelFacts, list_counts
from bertkit.recipes.seq2seq.examples import SetCounts
from bertkit.recipes.seq2seq.kinds import Kind
from bertkit.training.finished import FinishedRecord, MaybeNumber

# The descriptions of a set's counts; those that aren't 0 are shown.
COUNT_NAMES = {
    "num_pairs": "pairs",
    "num_source_tokens": "tokens to read",
    "num_target_tokens": "tokens to write",
    "num_unknown": "tokens that aren't in the vocabulary",
    "num_cut": "pairs that were too long and truncated",
    "num_cut_targets": "pairs whose target was truncated",
    "num_too_long": "pairs left out because they were too long",
    "num_over_limit": "pairs left out because they had over a million characters",
    "num_empty": "pairs left out because a side was empty",
    "num_broken": "rows left out because they were invalid",
    "num_undecodable": "rows with bytes that aren't UTF-8",
    "num_with_nul": "pairs with NUL characters, which were removed",
}


class SavedResult(FinishedRecord):
    """The content of `metrics.json`.

    Attributes:
        kind: a key of `KINDS`.
        metric: the metric that selected the best step.
        metrics: metrics on the held-out pairs, with the model's default decoding settings.
        signatures: how the metrics were computed.
        baseline: metrics of copying the beginning of each source.
        num_epochs: number of epochs trained.
        averaged_steps: the averaged steps; empty if the model is the best step's.
        train: counts of the training pairs.
        dev: counts of the held-out pairs.
    """

    kind: str
    metric: str
    metrics: dict[str, MaybeNumber]
    signatures: dict[str, str]
    baseline: dict[str, MaybeNumber]
    num_epochs: float
    averaged_steps: tuple[int, ...]
    train: SetCounts
    dev: SetCounts


@dataclass(frozen=True)
class Seq2SeqFacts(ModelFacts):
    """The data shown in the report and the card.

    Attributes:
        kind: the kind of task.
        saved: the saved result.
        config: the model's config.
    """

    kind: Kind
    saved: SavedResult
    config: EncoderDecoderConfig

    @property
    def has_initial_model(self) -> bool:
        """Whether the weights come from an encoder instead of being random."""
        return self.record.settings["model"] is not None

    @property
    def origin(self) -> str:
        """A description of the initial weights."""
        if not self.has_initial_model:
            return "trained from random weights"
        return f"encoder and decoder initialized from {self.initial_model}"

    @property
    def weights(self) -> str:
        """A description of the final weights: averaged, or those of one step."""
        saved = self.saved
        if saved.averaged_steps:
            return (
                f"the mean of the weights after the steps"
                f" {', '.join(f'{step:,}' for step in saved.averaged_steps)}"
            )
        return f"the weights after step {saved.best_step:,}"

    def list_counts(self) -> list[tuple[str, Any, Any]]:
        """Return rows (description, training count, held-out count) of counts that aren't 0."""
        return list_counts(COUNT_NAMES, self.saved.train, self.saved.dev)
