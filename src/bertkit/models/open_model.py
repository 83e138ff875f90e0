"""A model on disk: found and opened once; what it holds is read when first asked for."""

import hashlib
import json
from collections.abc import Collection, Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from bertkit.base.errors import CheckpointError, MissingFileError, SettingsError
from bertkit.base.members import has_member
from bertkit.base.wings import CONFIGS, load_object
from bertkit.checkpoints.bundled import Part, find_bundled
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.elements import StoredRows
from bertkit.checkpoints.families import Family, find_family, is_bert
from bertkit.checkpoints.formats import (
    SNAPSHOTS,
    FileDescription,
    describe_files,
    describe_model,
    hash_files,
    name_model,
    open_checkpoint,
)
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.names import WORD_EMBEDDINGS
from bertkit.checkpoints.run_folder import find_checkpoint
from bertkit.checkpoints.sentence_transformers import (
    SentenceModel,
    is_sentence_transformers,
    read_sentence_model,
)
from bertkit.models.bert.architectures import (
    ARCHITECTURES,
    CAUSAL,
    MASKED_LM,
    Shapes,
    check_class,
    check_config,
    expected_shapes,
    find_architecture,
    list_own_heads,
    list_used_heads,
)
from bertkit.models.bert.arrays import read_weights
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.labels import LABEL_KEYS, ConfigValues
from bertkit.tokenization.folder import read_max_length
from bertkit.tokenization.names import ENGINE_FILE, TOKENIZER_FILES, VOCABULARY_FILE
from bertkit.tokenization.tokenizer import Tokenizer

if TYPE_CHECKING:
    from bertkit.models.bert.heads import WordScoringBert
    from bertkit.models.bert.pretrained import PretrainedBert


@dataclass(eq=False)
class OpenModel:
    """A model on disk."""

    path: Path  # its folder or, for TensorFlow, the common prefix of its files
    revision: str | None = None  # the version of a model of the Hub that was asked for
    changes: ConfigValues = field(default_factory=dict)  # replaced keys of its config
    opened: Checkpoint | None = field(default=None, repr=False)  # if that was opened before

    @classmethod
    def open(
        cls,
        model: "str | Path | OpenModel | None",
        *,
        revision: str | None = None,
        bundled: Part | None = None,
    ) -> "OpenModel":
        """Find a model, as `resolve_model` does, or return an open one; None opens `bundled`."""
        if isinstance(model, OpenModel):
            if revision is not None:
                raise SettingsError(f"{model.path} is open; give the revision where it is opened")
            return model
        if model is None and bundled is not None:
            model = find_bundled(bundled)
        return cls(resolve_model(model, revision=revision), revision)

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """Its format, its config as the folder has it, and the headers of its weights."""
        return self.opened or open_checkpoint(self.path)

    @property
    def folder(self) -> Path:
        """The folder of config and weights: that of the encoder, or a run's newest checkpoint."""
        return self.checkpoint.folder

    @property
    def is_sentence_encoder(self) -> bool:
        """Whether it is a model of sentence-transformers, or the checkpoint of one in a run."""
        is_of_run = self.checkpoint.format == "run_folder"
        is_here = is_of_run and is_sentence_transformers(self.checkpoint.folder)
        return is_here or self.checkpoint.format == "sentence_transformers"

    @property
    def is_bert(self) -> bool:
        """Whether it is a BERT, and not one of the models that wings add (`CONFIGS`)."""
        return is_bert(self.checkpoint.config)

    @property
    def family(self) -> Family:
        """The family of encoders that its config names."""
        return find_family(self.checkpoint.config)

    @property
    def is_bidirectional(self) -> bool:
        """Whether its tokens attend to both sides: its config doesn't say `is_decoder`."""
        return self.checkpoint.config.get("is_decoder") is not True

    @property
    def word_architecture(self) -> str:
        """The name of the class with which it predicts words, whatever else it is for."""
        return MASKED_LM if self.is_bidirectional else CAUSAL

    @property
    def word_model(self) -> type["WordScoringBert"]:
        """The class of `word_architecture`; loads torch."""
        return cast("type[WordScoringBert]", ARCHITECTURES[self.word_architecture].kind)

    @cached_property
    def config(self) -> BertConfig:
        """Its config with the changes; errors as in `BertConfig.from_dict`."""
        replaced = LABEL_KEYS if self.changes.keys() & set(LABEL_KEYS) else ()
        saved = self.checkpoint.config.items()
        kept = {name: value for name, value in saved if name not in replaced}
        changes = self.family.config.rename_keys(self.changes)
        return BertConfig.from_dict({**kept, **changes}, self.folder)

    @cached_property
    def halves(self) -> tuple[BertConfig, ...]:
        """The configs of its parts, such as an encoder and a decoder; of a BERT, its own alone."""
        if self.is_bert:
            return (self.config,)
        kind = load_object(CONFIGS[str(self.checkpoint.config["model_type"])])
        halves: tuple[BertConfig, ...] = kind.from_dict(self.checkpoint.config, self.folder).halves
        return halves

    @cached_property
    def heads(self) -> tuple[str, ...]:
        """The heads that its weights have, pooler included, in the words of `HEADS`."""
        return self.family.names.list_heads(self.checkpoint.tensors)

    @cached_property
    def architecture(self) -> str:
        """Its class, as in `find_architecture`."""
        return find_architecture(self.checkpoint.config, self.heads, self.folder)

    @cached_property
    def shapes(self) -> Shapes:
        """The shapes of all weights that its class can have, by our names, its files' heads too.

        Raises:
            CheckpointError: the config isn't valid.
        """
        heads = list_own_heads(self.family.names, self.architecture, self.heads)
        return expected_shapes(self.config, self.architecture, heads)

    def list_unused_heads(self, architecture: str, weights: Iterable[str]) -> list[str]:
        """Return the heads of its files of which a class's weights, by our names, use nothing."""
        table = self.family.names.table(architecture)
        used = {table.find_part(their) for name in weights for their in table.their_names(name)}
        return [head for head in self.heads if head not in used]

    @property
    def has_tokenizer(self) -> bool:
        """Whether its folder has the files of a tokenizer."""
        return any(has_member(self.folder, name) for name in (VOCABULARY_FILE, ENGINE_FILE))

    @property
    def kind(self) -> type["PretrainedBert"]:
        """Its class, which its architecture names; loads torch."""
        return ARCHITECTURES[self.architecture].kind

    @cached_property
    def tokenizer_folder(self) -> Path:
        """The folder of the tokenizer's files, which are verified if it is a run's."""
        has_own = self.checkpoint.base is None or self.has_tokenizer
        home = self.folder if has_own else self.checkpoint.base
        return find_checkpoint(home or self.folder, reading=TOKENIZER_FILES)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Its tokenizer, whose vocabulary the model has room for."""
        if self.is_from_hub and self.checkpoint.base is None and not self.has_tokenizer:
            raise MissingFileError(
                f"{self.title} has no {ENGINE_FILE} on the Hub; make a folder that has one with"
                f" transformers: AutoTokenizer.from_pretrained({self.title!r}).save_pretrained(…),"
                " and the same of its model"
            )
        tokenizer = Tokenizer.load(self.tokenizer_folder)
        self.check_vocabulary(tokenizer.vocab_size)
        offset = self.config.parts.position_offset if self.is_bert else 0
        if offset and tokenizer.pad_id != offset - 1:
            raise CheckpointError(
                f"{self.folder}: positions begin behind the id of padding, which is {offset - 1} in"
                f" config.json and {tokenizer.pad_id} in the vocabulary; fetch the model's own"
                " tokenizer"
            )
        return tokenizer

    def check_vocabulary(self, num_entries: int) -> None:
        """Raise a `CheckpointError` if a vocabulary has more entries than the model."""
        limit = min(half.vocab_size for half in self.halves)
        if num_entries > limit:
            raise CheckpointError(
                f"{self.folder}: the vocabulary has {num_entries:,} entries and the model"
                f" {limit:,}; they don't match"
            )

    @cached_property
    def model_max_length(self) -> int | None:
        """The maximum length that the tokenizer's folder states; None if it states none.

        A run of `bertkit pretrain` states the length it was trained with: the embeddings of later
        positions still have their random initial values.
        """
        return read_max_length(self.tokenizer_folder)

    @cached_property
    def sentences(self) -> SentenceModel | None:
        """Modules and settings of a sentence encoder; None for other models."""
        if not self.is_sentence_encoder:
            return None
        is_of_run = self.checkpoint.format == "run_folder"
        folder = self.checkpoint.folder if is_of_run else self.path
        return read_sentence_model(folder, self.checkpoint)

    @property
    def name(self) -> str:
        """Its name for records, as in `name_model`."""
        return name_model(self.path.resolve())

    @property
    def title(self) -> str:
        """Its name for titles and messages, as in `describe_model`."""
        return describe_model(self.path.resolve())

    @property
    def is_from_hub(self) -> bool:
        """Whether it is in the Hub's cache."""
        return self.path.parent.name == SNAPSHOTS

    def describe_files(self) -> tuple[FileDescription, ...]:
        """Return the size of each file, weights and metadata, and its SHA-256."""
        return describe_files(self.path, self.checkpoint)

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of its file names and contents, wherever it is; reads all of them."""
        described = self.describe_files()
        files = sorted((file.name, file.sha256) for file in described)
        return hashlib.sha256(json.dumps(files).encode()).hexdigest()

    def identify(self) -> dict[str, str | dict[str, str] | None]:
        """Return revision, commit, and the SHA-256 of config and weights, for a run's record."""
        return {
            "revision": self.revision,
            "commit": self.path.name if self.is_from_hub else None,
            "sha256": hash_files(self.checkpoint),
        }

    def read_arrays(self, architecture: str) -> dict[str, NDArray[np.float32]]:
        """Read the weights of a class by our names, as its `state_dict()` has them.

        They may be views of the files, whose pages are read when first used.

        Raises:
            CheckpointError: the config or tensors don't fit the class.
            DamagedFileError: a file is truncated or altered.
        """
        check_class(self.config, architecture, self.folder)
        try:
            check_config(self.config, architecture)
        except SettingsError as error:
            raise CheckpointError(f"{self.folder}: {error}") from None
        heads = list_used_heads(architecture, self.heads)
        expected = expected_shapes(self.config, architecture, heads)
        return read_weights(self.checkpoint, expected, architecture)[0]

    def read_words(self) -> StoredRows:
        """Return the word embeddings, for programs that look up few of them.

        `read_arrays` checks them; it comes first.
        """
        (name,) = self.family.names.names[WORD_EMBEDDINGS]
        words = self.checkpoint.tensors[name]
        return StoredRows(words.read_stored(), words.dtype)

    def change(self, **changes: Any) -> "OpenModel":
        """Return the model with keys of its config replaced, in addition to earlier changes."""
        if not changes:
            return self
        return replace(self, changes={**self.changes, **changes}, opened=self.checkpoint)

    def without_parts(self, parts: Collection[str]) -> "OpenModel":
        """Return the model without the tensors of some heads."""
        tensors, find_part = self.checkpoint.tensors.items(), self.family.names.find_part
        kept = {name: tensor for name, tensor in tensors if find_part(name) not in parts}
        return replace(self, opened=replace(self.checkpoint, tensors=kept))

    def without_weights(self) -> "OpenModel":
        """Return the model without its tensors, so that the memory of their files can be freed."""
        closed = copy(self)  # with what was read
        closed.checkpoint = closed.opened = replace(self.checkpoint, tensors={})
        return closed
