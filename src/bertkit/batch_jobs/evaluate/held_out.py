"""Evaluate the pre-training heads of a model on the held-out text of shards."""

from dataclasses import dataclass
from pathlib import Path

from bertkit.base.errors import InputError
from bertkit.base.progress import show_progress
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.names import list_heads
from bertkit.data.shards import ShardSet
from bertkit.inference.loading import LoadedModel
from bertkit.objectives.settings import ObjectiveName
from bertkit.objectives.table import OBJECTIVES
from bertkit.recipes.pretrain.evaluation import build_objective, evaluate_words, held_out_batches
from bertkit.recipes.pretrain.settings import PretrainSettings

MAX_LENGTH = 128  # as `bertkit pretrain` trains by default


@dataclass(frozen=True)
class HeldOutResult:
    """Metrics of the pre-training heads.

    Attributes:
        objective: bert, mlm or causal, as the model's heads allow.
        num_documents: held-out documents of the shards.
        num_sequences: sequences that were evaluated.
        num_predicted: words that were predicted.
        max_length: maximum tokens of a sequence.
        metrics: losses, accuracies, perplexity and bits per character.
    """

    objective: ObjectiveName
    num_documents: int
    num_sequences: int
    num_predicted: int
    max_length: int
    metrics: dict[str, float]


def evaluate_held_out(
    model: str | Path, data: Path, device: str = "auto", *, revision: str | None = None
) -> HeldOutResult:
    """Evaluate a model on all held-out text of shards, masked as in every evaluation of a run.

    Args:
        model: a run of `bertkit pretrain`, a model folder, or the id of a model of the Hub.
        data: the folder that `bertkit prepare` wrote.
        device: auto, cpu, cuda or cuda:N.
        revision: a branch, tag or commit of a model of the Hub.

    Raises:
        InputError: the shards have no held-out text, or were made with another tokenizer.
        CheckpointError: the model has no head that predicts words.
        BertkitError: model or shards can't be read.
    """
    checkpoint = open_checkpoint(resolve_model(model, revision=revision))
    objective_name = choose_objective(checkpoint)
    shards = ShardSet.open(data)
    kind = OBJECTIVES[objective_name].model_kind
    loaded = LoadedModel.from_checkpoint(kind, checkpoint, device)
    tokenizer = loaded.tokenizer
    if shards.load_tokenizer().fingerprint != tokenizer.fingerprint:
        raise InputError(
            f"{data} was prepared with another tokenizer than that of {model}; prepare the text"
            f" with its own: bertkit prepare … --tokenizer {model}"
        )
    settings = PretrainSettings(
        start_from=str(model),
        objective=objective_name,
        max_length=min(MAX_LENGTH, loaded.max_length),
        eval_sequences=max(1, shards.manifest.held_out.tokens),
    )
    batches = held_out_batches(shards, tokenizer, settings)
    objective = build_objective(shards.held_out, shards, tokenizer, settings)
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


def choose_objective(checkpoint: Checkpoint) -> ObjectiveName:
    """Return the objective that uses all heads of a checkpoint."""
    if checkpoint.config.get("is_decoder") is True:
        return "causal"
    return "bert" if "next_sentence" in list_heads(checkpoint.tensors) else "mlm"
