"""Evaluate the pre-training heads of a model on held-out text."""

from dataclasses import dataclass
from pathlib import Path

from bertkit.base.errors import InputError
from bertkit.base.progress import show_progress
from bertkit.data.shards import ShardSet
from bertkit.inference.torch_model import TorchModel
from bertkit.models.open_model import OpenModel
from bertkit.recipes.pretrain.job import evaluate_words, find_objective, held_out_batches
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tasks.objectives.settings import ObjectiveName
from bertkit.tasks.objectives.table import OBJECTIVES

MAX_LENGTH = 128  # as `bertkit pretrain` trains by default


@dataclass(frozen=True)
class HeldOutResult:
    """Metrics of the pre-training heads."""

    objective: ObjectiveName
    num_documents: int
    num_sequences: int
    num_predicted: int  # words
    max_length: int  # in tokens
    metrics: dict[str, float]


def evaluate_held_out(
    model: str | Path, data: Path, device: str = "auto", *, revision: str | None = None
) -> HeldOutResult:
    """Evaluate a model on all held-out text of shards, masked as in every evaluation of a run."""
    opened = OpenModel.open(model, revision=revision)
    objective_name = find_objective(opened)
    shards = ShardSet.open(data)
    objective = OBJECTIVES[objective_name]
    loaded = TorchModel.load(objective.model_kind, opened, device)
    tokenizer = loaded.tokenizer
    if shards.load_tokenizer().fingerprint != tokenizer.fingerprint:
        raise InputError(
            f"{data} was prepared with another tokenizer than that of {model}; prepare the text"
            f" with its own: bertkit prepare … --tokenizer {model}"
        )
    settings = PretrainSettings(
        model=str(model),
        objective=objective_name,
        max_length=min(MAX_LENGTH, loaded.max_length),
        eval_examples=max(1, shards.manifest.held_out.tokens),
    )
    batches = held_out_batches(shards, tokenizer, settings)
    place = loaded.model.encoder.embeddings.word.weight.device
    with show_progress("Evaluating", len(batches)) as progress:
        metrics = evaluate_words(
            loaded.model, batches, objective, tokenizer, place, progress.advance
        )
    return HeldOutResult(
        objective_name,
        shards.manifest.held_out.documents,
        sum(len(batch.keys) for batch in batches),
        sum(len(batch.labels) for batch in batches),
        settings.max_length,
        metrics,
    )
