"""Loading of a model with its tokenizer."""

import hashlib
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Self, TypeVar

from bertkit.base.errors import CheckpointError, InputError, pluralize, storage_errors
from bertkit.base.files import check_is_file
from bertkit.base.members import find_member, has_member
from bertkit.base.progress import ProgressBar, show_progress
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.file_names import DESCRIPTIONS, WEIGHTS
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import find_bundled, resolve_model
from bertkit.checkpoints.run_folder import find_checkpoint
from bertkit.checkpoints.sentence_transformers import list_module_folders
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.pretrained import PretrainedBert
from bertkit.tokenization.folder import CONFIG_FILE, ENGINE_FILE, VOCABULARY_FILE, read_max_length
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.device import choose_device

PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class FileDescription:
    """A file of a checkpoint.

    Attributes:
        name: relative to the model's folder.
        size_bytes: its length.
        sha256: SHA-256 of its content; None if it wasn't computed.
    """

    name: str
    size_bytes: int
    sha256: str | None


def list_model_files(path: Path, checkpoint: Checkpoint) -> tuple[Path, tuple[Path, ...]]:
    """List the files of a model, weights and metadata, with the folder that holds them.

    Args:
        path: path that the checkpoint was opened from.
        checkpoint: the opened checkpoint.
    """
    home, prefixes = checkpoint.folder, [""]
    if checkpoint.format == "sentence_transformers":
        home, prefixes = path, ["", *list_module_folders(path)]
    others = [
        find_member(home, prefix + name)
        for prefix in prefixes
        for name in (*DESCRIPTIONS, *WEIGHTS)
        if has_member(home, prefix + name)
        and (name in DESCRIPTIONS or prefix or not checkpoint.tensors)
    ]
    return home, tuple(dict.fromkeys((*checkpoint.files, *others)))


def hash_model(path: Path, checkpoint: Checkpoint) -> str:
    """Compute the SHA-256 of a model's file names and contents, independent of its location."""
    home, paths = list_model_files(path, checkpoint)
    files = sorted((file.name, file.sha256) for file in describe_files(home, paths, hashes=True))
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()


def describe_files(
    folder: Path, paths: Iterable[Path], *, hashes: bool
) -> tuple[FileDescription, ...]:
    """Return the size of each file, and with `hashes` its SHA-256."""
    sizes = {}
    for path in dict.fromkeys(paths):
        check_is_file(path)
        with storage_errors(path, "read"):
            sizes[path] = path.stat().st_size
    with show_progress("Hashing", sum(sizes.values()), is_bytes=True) as progress:
        return tuple(
            FileDescription(
                path.relative_to(folder).as_posix(),
                size,
                _hash(path, progress) if hashes else None,
            )
            for path, size in sizes.items()
        )


def _hash(path: Path, progress: ProgressBar) -> str:
    digest = hashlib.sha256()
    with storage_errors(path, "read"), path.open("rb") as stream:
        while data := stream.read(PIECE_BYTES):
            digest.update(data)
            progress.advance(len(data))
    return digest.hexdigest()


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
