"""A model with its tokenizer, and text packed for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Self, TypeVar

from bertkit.base.errors import CheckpointError, InputError
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.run_folder import find_checkpoint
from bertkit.models.bert.pretrained import PretrainedBert
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.encoding import Encoding
from bertkit.tokenization.folder import CONFIG_FILE, ENGINE_FILE, VOCABULARY_FILE
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.device import choose_device

TOKENS_PER_BATCH = 4096
TOKENIZER_FILES = (VOCABULARY_FILE, ENGINE_FILE, CONFIG_FILE)


Model = TypeVar("Model", bound=PretrainedBert)


@dataclass(frozen=True)
class LoadedModel(Generic[Model]):
    """A pre-trained model, in evaluation, and the tokenizer that belongs to it."""

    model: Model
    tokenizer: Tokenizer

    @classmethod
    def load(
        cls,
        kind: type[Model],
        path: str | Path,
        device: str = "auto",
        *,
        revision: str | None = None,
    ) -> Self:
        """Load a run of `bertkit pretrain`, a model folder, or a model of the Hub.

        Args:
            kind: the model's class; the checkpoint must have its heads, and may have others.
            path: as in `PretrainedBert.from_pretrained`.
            device: auto, cpu, cuda or cuda:N.
            revision: a branch, tag or commit of a model of the Hub.

        Raises:
            MissingFileError: no model is there.
            HubError: the Hub doesn't give it.
            CheckpointError: config, tensors or vocabulary don't fit each other, or a head is
                missing.
            DamagedFileError: a file was cut short or altered.
            UnsafeFileError: a file asks for what none may.
        """
        return cls.from_checkpoint(
            kind, open_checkpoint(resolve_model(path, revision=revision)), device
        )

    @classmethod
    def from_checkpoint(
        cls, kind: type[Model], checkpoint: Checkpoint, device: str = "auto"
    ) -> Self:
        """Load a checkpoint that is open already; errors as in `load`."""
        folder = find_checkpoint(checkpoint.folder, reading=TOKENIZER_FILES)
        tokenizer = Tokenizer.load(folder)
        model = kind.from_checkpoint(checkpoint).to(choose_device(device))
        if tokenizer.vocab_size > model.config.vocab_size:
            raise CheckpointError(
                f"{folder}: the vocabulary has {tokenizer.vocab_size:,} entries and the model"
                f" {model.config.vocab_size:,}; they don't belong together"
            )
        return cls(model, tokenizer)

    def encode(self, text: str, pair: str | None, *, name: str, read_mask: bool) -> Encoding:
        """Encode one text or pair, all of it.

        Raises:
            InputError: a text is empty, or they are longer than the model takes, or it is a pair
                and the model knows no second segment.
        """
        config = self.model.config
        if pair is not None and config.type_vocab_size == 1:
            raise InputError("this model takes single texts only: its type_vocab_size is 1")
        encoding = self.tokenizer.encode(text, pair, read_mask=read_mask)
        segments = encoding.token_type_ids
        # Of the first text two tokens are special, [CLS] and [SEP], of the second one.
        if segments.count(0) == 2 or (pair is not None and segments.count(1) == 1):
            raise InputError(f"{name} has an empty text; each must have at least one word")
        limit = config.max_position_embeddings
        if len(segments) > limit:
            raise InputError(
                f"{name} has {len(segments):,} tokens, and the model takes {limit}; shorten it"
            )
        return encoding

    def batches(self, encodings: Sequence[Encoding]) -> Iterator[tuple[list[int], PackedBatch]]:
        """Pack encodings of similar length together; also which ones each batch holds."""
        chosen: list[int] = []
        size = 0
        for index in sorted(range(len(encodings)), key=lambda index: len(encodings[index].ids)):
            length = len(encodings[index].ids)
            if chosen and size + length > TOKENS_PER_BATCH:
                yield chosen, self._pack([encodings[number] for number in chosen])
                chosen, size = [], 0
            chosen.append(index)
            size += length
        if chosen:
            yield chosen, self._pack([encodings[number] for number in chosen])

    def _pack(self, encodings: Sequence[Encoding]) -> PackedBatch:
        device = next(self.model.parameters()).device
        return PackedBatch.from_sequences(
            [encoding.ids for encoding in encodings],
            [encoding.token_type_ids for encoding in encodings],
        ).to(device)
