"""What the report and the card of an encoder-decoder tell."""

from dataclasses import dataclass
from typing import Any

from bertkit.checkpoints.hub.resolve import is_hub_id
from bertkit.models.seq2seq.config import EncoderDecoderConfig
from bertkit.recipes.seq2seq.examples import SetCounts
from bertkit.recipes.seq2seq.kinds import Kind
from bertkit.training.finished import FinishedRecord, MaybeNumber
from bertkit.training.run import RunRecord

# Counts of a set, and what to call each; all are told that aren't 0.
COUNT_NAMES = {
    "num_pairs": "pairs",
    "num_source_tokens": "tokens to read",
    "num_target_tokens": "tokens to write",
    "num_unknown": "tokens that aren't in the vocabulary",
    "num_cut": "pairs that were cut, being too long",
    "num_cut_targets": "pairs of which the end of what is to be written was left out",
    "num_too_long": "pairs that were left out, being too long",
    "num_over_limit": "pairs that were left out, having over a million characters",
    "num_empty": "pairs that were left out, a side being empty",
    "num_broken": "rows that were left out, being broken",
    "num_undecodable": "rows with what isn't UTF-8",
    "num_with_nul": "pairs with NULs, which were dropped",
}


class SavedResult(FinishedRecord):
    """The content of `metrics.json`.

    Attributes:
        kind: a key of `KINDS`.
        metric: the one by which the best step was known.
        metrics: of the held-out pairs, as the model writes by itself.
        signatures: how they were computed.
        baseline: of copying the beginnings of what is read.
        num_epochs: how often all pairs were seen.
        averaged_steps: those whose mean the model is; empty where it is that of the best step.
        train: what was met in the training pairs.
        dev: what was met in the held-out ones.
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
class Seq2SeqFacts:
    """All of it.

    Attributes:
        name: of the model's folder.
        record: what the run was begun with.
        kind: what it was trained for.
        saved: what came of it.
        config: the model's sizes.
    """

    name: str
    record: RunRecord
    kind: Kind
    saved: SavedResult
    config: EncoderDecoderConfig

    @property
    def parent(self) -> str | None:
        """The name of the encoder that it began with, without folders; None for a new model."""
        model = self.record.settings["model"]
        if model is None:
            return None
        return str(model) if self.is_from_hub else str(model).rstrip("/").rpartition("/")[2]

    @property
    def is_from_hub(self) -> bool:
        """Whether the encoder was named by its id on the Hub."""
        model = str(self.record.settings["model"])
        return bool(self.record.source.get("commit")) and is_hub_id(model)

    @property
    def origin(self) -> str:
        """What its weights were at first."""
        if self.parent is None:
            return "trained from nothing"
        return f"both halves begun with the weights of {self.parent}"

    @property
    def weights(self) -> str:
        """Which weights these are."""
        saved = self.saved
        if saved.averaged_steps:
            return (
                f"the mean of the weights after the steps"
                f" {', '.join(f'{step:,}' for step in saved.averaged_steps)}"
            )
        return f"the weights after step {saved.best_step:,}"

    @property
    def settings(self) -> dict[str, str]:
        """What was chosen, but for names of files and folders."""
        return {
            name: "none" if value is None else str(value)
            for name, value in self.record.settings.items()
            if name not in {"kind", "model", "revision", "train", "dev"}
        }

    def count_rows(self) -> list[tuple[str, Any, Any]]:
        """What was met, in training and in held-out pairs; only what was met at all."""
        train, dev = self.saved.train, self.saved.dev
        rows = [
            (words, getattr(train, key), getattr(dev, key)) for key, words in COUNT_NAMES.items()
        ]
        return [row for row in rows if row[1] or row[2]]
