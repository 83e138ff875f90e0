"""The architecture of a checkpoint: a BERT or an encoder-decoder."""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.huggingface import is_encoder_decoder
from bertkit.checkpoints.names import BERT, HEADS, NameTable, count_parameters, list_heads
from bertkit.checkpoints.seq2seq_names import ENCODER_DECODER, SHARED, UNUSED_PARTS
from bertkit.checkpoints.transfer import list_problems, list_unequal_copies
from bertkit.models.bert.architectures import (
    ARCHITECTURES,
    expected_shapes,
    find_architecture,
)
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.weights import without_memory
from bertkit.models.seq2seq.config import EncoderDecoderConfig
from bertkit.models.seq2seq.model import EncoderDecoderModel
from bertkit.models.seq2seq.weights import ARCHITECTURE

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Architecture(ABC):
    """A checkpoint, to be compared with the kind of model that its config names.

    Attributes:
        checkpoint: the open checkpoint; it may have no tensors.
    """

    checkpoint: Checkpoint

    @property
    @abstractmethod
    def names(self) -> NameTable:
        """The table of its tensor names."""

    @property
    @abstractmethod
    def architecture(self) -> str:
        """The name of the model's class."""

    @abstractmethod
    def read_config(self) -> BertConfig | EncoderDecoderConfig:
        """Read the config."""

    @abstractmethod
    def expected(self, config: Any, architecture: str) -> Shapes:
        """Return bertkit's tensor names and shapes for a config and the heads present."""

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads present, pooler included."""
        return ()

    @property
    def unused_parts(self) -> tuple[str, ...]:
        """Parts that loading ignores."""
        return ()

    def list_problems(self, config: Any, architecture: str) -> list[str]:
        """List where names and shapes of the tensors differ from those that the config requires."""
        expected = self.expected(config, architecture)
        return list_problems(self.checkpoint.tensors, expected, self.unused_parts, self.names)

    def list_unequal_copies(self) -> list[str]:
        """List tied tensors that are stored twice and differ."""
        return list_unequal_copies(self.checkpoint.tensors, self.names)

    def list_dropped(self) -> tuple[str, ...]:
        """List tensors that are copies of others or aren't weights."""
        known = {*self.names.dropped, *self.names.copies}
        return tuple(sorted(known.intersection(self.checkpoint.tensors)))

    def count_tensors(self) -> dict[str, int]:
        """Count the parameters of the checkpoint's tensors, by part."""
        shapes = {name: tensor.shape for name, tensor in self.checkpoint.tensors.items()}
        return count_parameters(shapes, self.names)

    def count_expected(self, config: Any, architecture: str) -> dict[str, int]:
        """Count the parameters that a config requires, by part."""
        parts: Counter[str] = Counter()
        for name, shape in self.expected(config, architecture).items():
            words = name.split(".")
            parts[".".join(words[: 2 if words[0] in ("encoder", "decoder") else 1])] += math.prod(
                shape
            )
        return dict(parts)


@final
@dataclass(frozen=True)
class SingleEncoder(Architecture):
    """One BERT, with heads."""

    @property
    def names(self) -> NameTable:
        """The table of a BERT's tensor names."""
        return BERT

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads present, pooler included."""
        return list_heads(self.checkpoint.tensors)

    @property
    def architecture(self) -> str:
        """The class that the config names if the heads fit it, else the first that fits."""
        checkpoint = self.checkpoint
        return find_architecture(checkpoint.config, self.heads, checkpoint.folder)

    def read_config(self) -> BertConfig:
        """Read the config; errors as in `BertConfig.from_dict`."""
        return BertConfig.from_dict(self.checkpoint.config, self.checkpoint.folder)

    def expected(self, config: BertConfig, architecture: str) -> Shapes:
        """Return names and shapes for the heads present or, without tensors, those of the class."""
        if self.checkpoint.tensors:
            return expected_shapes(config, architecture, self.heads)
        needed = ARCHITECTURES.get(architecture)
        if needed is None:
            return {}
        heads = needed or {"pooler"}
        return expected_shapes(config, architecture, [head for head in HEADS if head in heads])


@final
@dataclass(frozen=True)
class EncoderDecoder(Architecture):
    """An encoder-decoder."""

    @property
    def names(self) -> NameTable:
        """The table of both halves' tensor names."""
        return ENCODER_DECODER

    @property
    def architecture(self) -> str:
        """The name of the only class."""
        return ARCHITECTURE

    @property
    def unused_parts(self) -> tuple[str, ...]:
        """The encoder's pooler."""
        return UNUSED_PARTS

    def read_config(self) -> EncoderDecoderConfig:
        """Read the config; errors as in `EncoderDecoderConfig.from_dict`."""
        return EncoderDecoderConfig.from_dict(self.checkpoint.config, self.checkpoint.folder)

    def expected(self, config: EncoderDecoderConfig, architecture: str) -> Shapes:
        """Return names and shapes of both halves and the head."""
        del architecture
        with without_memory():
            states = EncoderDecoderModel(config).state_dict()
        return {name: tuple(tensor.shape) for name, tensor in states.items()}

    def count_tensors(self) -> dict[str, int]:
        """Count parameters by part; shared embeddings count once."""
        tensors = dict(self.checkpoint.tensors)
        if self.checkpoint.config.get("shares_embeddings") is True:
            tensors.pop(SHARED[1], None)
        return count_parameters({name: t.shape for name, t in tensors.items()}, self.names)


def choose_anatomy(checkpoint: Checkpoint) -> Architecture:
    """Return the architecture that a checkpoint's config names."""
    kind = EncoderDecoder if is_encoder_decoder(checkpoint.config) else SingleEncoder
    return kind(checkpoint)
