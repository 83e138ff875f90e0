"""A left-to-right model with its tokenizer: what can be read of it, and what it may write."""

import sys
from dataclasses import dataclass
from pathlib import Path

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.run_folder import find_checkpoint
from bertkit.inference.loading import TOKENIZER_FILES, LoadedModel
from bertkit.models.bert.causal import BertLMHeadModel
from bertkit.models.bert.config import BertConfig
from bertkit.tokenization.folder import read_max_length


@dataclass(frozen=True)
class CausalModel(LoadedModel[BertLMHeadModel]):
    """A left-to-right model, in evaluation, and the tokenizer that belongs to it.

    Attributes:
        max_length: most tokens that it reads at a time, as in `find_max_length`.
    """

    max_length: int

    @property
    def limit(self) -> str:
        """How many those are, and why, as in `describe_limit`."""
        return describe_limit(self.max_length, self.model.config)


def load_causal(
    path: str | Path, device: str = "auto", *, revision: str | None = None
) -> CausalModel:
    """Load a left-to-right model.

    Arguments and errors are those of `LoadedModel.load`.

    Raises:
        CheckpointError: it reads both ways, too.
    """
    checkpoint = open_checkpoint(resolve_model(path, revision=revision))
    is_bert = checkpoint.config.get("model_type", "bert") == "bert"
    if is_bert and checkpoint.config.get("is_decoder") is not True:
        raise CheckpointError(
            f"{checkpoint.folder}: the model reads both ways, so it can't say what comes next;"
            " `bertkit pretrain --objective causal --from` it makes one that can"
        )
    loaded = LoadedModel.from_checkpoint(BertLMHeadModel, checkpoint, device)
    max_length = find_max_length(checkpoint, loaded.model.config)
    return CausalModel(loaded.model, loaded.tokenizer, max_length)


def find_max_length(checkpoint: Checkpoint, config: BertConfig) -> int:
    """Most tokens that a left-to-right model reads at a time.

    Its positions; fewer where its tokenizer's folder says so: the positions behind those that it
    was trained on hold what was drawn for them. Errors are those of `read_max_length`.
    """
    folder = find_checkpoint(checkpoint.folder, reading=TOKENIZER_FILES)
    return min(config.max_position_embeddings, read_max_length(folder) or sys.maxsize)


def describe_limit(max_length: int, config: BertConfig) -> str:
    """How many tokens a model takes, and whether it is that it was trained on no more."""
    if max_length < config.max_position_embeddings:
        return f"was trained on {max_length:,} at a time"
    return f"takes {max_length:,}"


def find_unwritable(loaded: CausalModel) -> tuple[int, ...]:
    """Ids that are no text: the special tokens but the end, and those that have no word."""
    tokenizer = loaded.tokenizer
    special = tokenizer.special_ids - {tokenizer.sep_id}
    wordless = range(tokenizer.vocab_size, loaded.model.config.vocab_size)
    return (*sorted(special), *wordless)
