"""What a model reads: its tokenizer and its limits, without its weights."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bertkit.base.errors import InputError, SettingsError, pluralize
from bertkit.models.bert.config import BertConfig
from bertkit.models.open_model import OpenModel
from bertkit.tokenization.tokenizer import Tokenizer


def stamp_model(model: str | Path, revision: str | None) -> dict[str, str | None]:
    """Describe a model by its name and the SHA-256 of its files, wherever they are."""
    sha256 = OpenModel.open(model, revision=revision).sha256
    return {"model": str(model), "revision": revision, "model_files": sha256}


@dataclass(frozen=True)
class LoadedModel:
    """What a loaded model reads: its tokenizer, and how many tokens and segments it takes."""

    config: BertConfig
    tokenizer: Tokenizer
    opened: OpenModel | None = None  # without its weights; None for a model made in memory

    @property
    def max_length(self) -> int:
        """Maximum number of tokens of a sequence, unless a caller asks for more."""
        stated = self.opened.model_max_length if self.opened else None
        return find_max_length(self.config, stated)

    @property
    def limit(self) -> str:
        """The maximum length as text for messages, with its origin if there are more positions."""
        origin = ""
        if self.max_length < self.config.max_length:
            origin = " at a time (model_max_length of its tokenizer's folder)"
        return f"takes {self.max_length:,}{origin}"

    @classmethod
    def of(cls, opened: OpenModel) -> Self:
        """Read what an open model takes, whose weights are loaded elsewhere."""
        return cls(opened.config, opened.tokenizer, opened.without_weights())

    def check_pairs(self) -> None:
        """Raise InputError if the tokenizer tells two texts apart by a segment that isn't there."""
        num_segments = self.config.type_vocab_size  # 0: the model doesn't read them
        if num_segments and max(self.tokenizer.template.pair.types) >= num_segments:
            raise InputError(
                f"this model takes single texts (type_vocab_size is {num_segments}), not pairs"
            )

    def choose_length(self, asked: int | None, usual: int | None = None) -> int:
        """Return the maximum length that was asked for, or else the usual one of the model."""
        limit = self.config.max_length
        max_length = asked or usual or self.max_length
        if max_length > limit:
            raise SettingsError(f"max_length is {max_length}, and this model takes at most {limit}")
        return max_length

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
    return min(config.max_length, model_max_length or sys.maxsize)
