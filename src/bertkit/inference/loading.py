"""Loading of a model with its tokenizer."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Self, TypeVar

from bertkit.base.errors import CheckpointError, InputError
from bertkit.base.wording import pluralize
from bertkit.checkpoints.bundled import find_bundled
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.run_folder import find_checkpoint
from bertkit.hardware.device import choose_device
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.pretrained import PretrainedBert
from bertkit.tokenization.folder import CONFIG_FILE, ENGINE_FILE, VOCABULARY_FILE, read_max_length
from bertkit.tokenization.tokenizer import Tokenizer

TOKENIZER_FILES = (VOCABULARY_FILE, ENGINE_FILE, CONFIG_FILE)


Model = TypeVar("Model", bound=PretrainedBert)


@dataclass(frozen=True)
class LoadedModel(Generic[Model]):
    """A pre-trained model in evaluation mode, with its tokenizer.

    Attributes:
        model: the model, on its device.
        tokenizer: its tokenizer.
        model_max_length: maximum sequence length stated in the model's folder, as in
            `load_tokenizer_and_length`.
    """

    model: Model
    tokenizer: Tokenizer
    model_max_length: int | None = None

    @property
    def max_length(self) -> int:
        """Maximum number of tokens of a sequence, unless a caller asks for more."""
        return find_max_length(self.model.config, self.model_max_length)

    @property
    def limit(self) -> str:
        """The maximum length as text for messages, with its origin."""
        return describe_limit(self.model.config, self.model_max_length)

    @classmethod
    def load(
        cls,
        kind: type[Model],
        path: str | Path | None = None,
        device: str = "auto",
        *,
        revision: str | None = None,
    ) -> Self:
        """Load a run of `bertkit pretrain`, a model folder, or a model of the Hub.

        Args:
            kind: the model's class; the checkpoint must have its heads, and may have others.
            path: as in `PretrainedBert.from_pretrained`; by default the model that comes with
                bertkit.
            device: auto, cpu, cuda or cuda:N.
            revision: a branch, tag or commit of a model of the Hub.
        """
        folder = resolve_model(path or find_bundled("words"), revision=revision)
        return cls.from_checkpoint(kind, open_checkpoint(folder), device)

    @classmethod
    def from_checkpoint(
        cls, kind: type[Model], checkpoint: Checkpoint, device: str = "auto"
    ) -> Self:
        """Load an opened checkpoint; errors as in `load`."""
        model = kind.from_checkpoint(checkpoint).to(choose_device(device))
        return cls(model, *load_tokenizer_and_length(checkpoint, model.config))

    def check_text(self, name: str, num_tokens: int, *, is_empty: bool) -> None:
        """Raise InputError for a text or pair that is empty or too long."""
        if is_empty:
            raise InputError(f"{name} has an empty text; each must have at least one word")
        if num_tokens > self.max_length:
            raise InputError(
                f"{name} has {pluralize(num_tokens, 'token')}, and the model {self.limit};"
                " shorten it"
            )


def find_max_length(config: BertConfig, model_max_length: int | None) -> int:
    """Return the maximum sequence length: the positions, or fewer if the folder says so."""
    return min(config.max_position_embeddings, model_max_length or sys.maxsize)


def describe_limit(config: BertConfig, model_max_length: int | None) -> str:
    """Describe the maximum sequence length, and its origin if the model has more positions."""
    most = find_max_length(config, model_max_length)
    if most < config.max_position_embeddings:
        return f"takes {most:,} at a time (model_max_length of its tokenizer's folder)"
    return f"takes {most:,}"


def load_tokenizer(checkpoint: Checkpoint, config: BertConfig) -> Tokenizer:
    """Load the tokenizer of a checkpoint; errors as in `load_tokenizer_and_length`."""
    return load_tokenizer_and_length(checkpoint, config)[0]


def load_tokenizer_and_length(
    checkpoint: Checkpoint, config: BertConfig
) -> tuple[Tokenizer, int | None]:
    """Load the tokenizer of a checkpoint, and the maximum length stated in its folder, if any.

    A run of `bertkit pretrain` states the length it was trained with (`model_max_length`): the
    embeddings of later positions still have their random initial values.
    """
    folder = find_checkpoint(checkpoint.folder, reading=TOKENIZER_FILES)
    tokenizer = Tokenizer.load(folder)
    if tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(
            f"{folder}: the vocabulary has {tokenizer.vocab_size:,} entries and the model"
            f" {config.vocab_size:,}; they don't match"
        )
    return tokenizer, read_max_length(folder)
