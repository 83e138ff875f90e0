"""The checkpoint that a pre-training run starts from (`--from`)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.base.errors import CheckpointError, InputError
from bertkit.base.progress import announce
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.identity import SNAPSHOTS, identify_checkpoint
from bertkit.checkpoints.names import list_heads
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import WordScoringBert
from bertkit.objectives.table import OBJECTIVES
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class InitialCheckpoint:
    """An opened checkpoint to start from.

    Attributes:
        checkpoint: its config and the headers of its weights.
        config: its config, with the run's dropout and `is_decoder`.
        facts: its identity for the run's record: revision, commit, and the SHA-256 of each file.
    """

    checkpoint: Checkpoint
    config: BertConfig
    facts: dict[str, Any]


def open_source(name: str, settings: PretrainSettings, tokenizer: Tokenizer) -> InitialCheckpoint:
    """Open a checkpoint, and check that it fits the shards.

    Args:
        name: a path, or the id of a model on the Hub.
        settings: settings of the run.
        tokenizer: the shards' tokenizer.
    """
    path = resolve_model(name, revision=settings.from_revision)
    checkpoint = open_checkpoint(path)
    check_tokenizer(checkpoint, tokenizer, settings)
    config = BertConfig.from_dict(
        {**checkpoint.config, **choose_changes(settings)}, checkpoint.folder
    )
    if config.vocab_size < tokenizer.vocab_size:
        raise CheckpointError(
            f"{checkpoint.folder}: the vocabulary has {tokenizer.vocab_size:,} entries and the"
            f" model {config.vocab_size:,}; they don't match"
        )
    facts = identify_checkpoint(checkpoint, path, settings.from_revision)
    return InitialCheckpoint(checkpoint, config, facts)


def choose_changes(settings: PretrainSettings) -> dict[str, Any]:
    """Return the keys of the source's config that the run overrides."""
    return {**settings.dropout_rates, "is_decoder": OBJECTIVES[settings.objective].is_causal}


def check_tokenizer(
    checkpoint: Checkpoint, tokenizer: Tokenizer, settings: PretrainSettings
) -> None:
    """Raise `InputError` if the shards were made with another tokenizer than the checkpoint's."""
    if Tokenizer.load(checkpoint.folder).fingerprint == tokenizer.fingerprint:
        return
    is_fetched = checkpoint.folder.parent.name == SNAPSHOTS
    named = settings.start_from if is_fetched else checkpoint.folder
    revision = f" --revision {settings.from_revision}" if settings.from_revision else ""
    raise InputError(
        f"the shards were prepared with another tokenizer than that of {settings.start_from};"
        f" prepare them with its own: bertkit prepare … --tokenizer {named}{revision}"
    )


def load_source(
    source: InitialCheckpoint,
    settings: PretrainSettings,
    token_counts: NDArray[np.unsignedinteger],
) -> WordScoringBert:
    """Build the model with a checkpoint's weights; new heads get random weights.

    A new masked LM head begins with the frequencies of the tokens. Announces new and dropped heads,
    and a change of reading direction.

    Args:
        source: the checkpoint.
        settings: settings of the run.
        token_counts: `[vocabulary]`, the number of occurrences of each token in the training text.
    """
    checkpoint = source.checkpoint
    kind = OBJECTIVES[settings.objective].model_kind
    model = kind.from_checkpoint(
        checkpoint, new_heads=settings.new_heads, **choose_changes(settings)
    )
    if model.new_heads:
        heads = ", ".join(model.new_heads)
        announce(f"new weights for {heads}, which {checkpoint.folder} doesn't have")
    if "masked_lm" in model.new_heads:
        model.masked_lm.start_at_frequencies(torch.from_numpy(token_counts.astype(np.int64)))
    own = {name for name, _ in model.named_children()}
    if left := [head for head in list_heads(checkpoint.tensors) if head not in own]:
        announce(
            f"dropped: {', '.join(left)} of {checkpoint.folder}, which the objective"
            f" {settings.objective} doesn't use"
        )
    if bool(checkpoint.config.get("is_decoder")) != source.config.is_decoder:
        way = "left to right" if source.config.is_decoder else "both ways"
        announce(f"{checkpoint.folder} was trained in the other direction; it is now {way}")
    return model
