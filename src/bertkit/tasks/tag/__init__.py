"""Tagging of words: named entities, parts of speech; read `task.py` first.

Source: Devlin et al. 2018, section 5.3: T_i of a word's first piece, then a linear layer.
"""

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from bertkit.base.settings import Count
from bertkit.tasks.settings import LabelColumn, TaskSettings, TextColumn
from bertkit.tokenization.long_texts import LongTextSettings

if TYPE_CHECKING:
    from bertkit.tasks.metrics.entities import Scheme

OVERLAP = 32  # tokens that two windows share by default, at most half a window


class TagSettings(LongTextSettings, TaskSettings):
    """Settings of tagging words."""

    text_column: TextColumn = None
    label_column: LabelColumn = None
    usual_columns: ClassVar = {
        "text": ("tokens", "words"),
        "label": ("tags", "ner_tags", "pos_tags"),
    }
    scheme: Literal["auto", "entities", "plain"] = Field(
        default="auto",
        description="entities: tags such as B-PER, I-PER and O mark entities of several words;"
        " plain: words have independent tags; auto decides by the tags.",
    )
    long_texts: Literal["truncate", "windows"] = Field(
        default="windows",
        description="What is read of sentences longer than --max-length: truncate, their beginning,"
        " whose words alone are tagged; windows, all of them, in windows that overlap.",
    )
    stride: Count | None = Field(
        default=None,
        description="Tokens between the starts of two windows, at most a window; by default, two"
        f" windows share {OVERLAP} tokens, at most half a window.",
    )

    @property
    def most_tokens(self) -> int:
        """The most tokens that are read of an example; windows leave nothing out."""
        return sys.maxsize if self.long_texts == "windows" else self.max_length

    def find_scheme(self, labels: Collection[str]) -> "Scheme | None":
        """Return the scheme by which labels mark entities; None if they don't."""
        from bertkit.tasks.metrics.entities import find_scheme

        return None if self.scheme == "plain" else find_scheme(labels)

    def choose_metric(self, labels: Sequence[str] = ()) -> str:
        """Return F1 of entities, or accuracy if labels don't mark entities."""
        return "accuracy" if self.find_scheme(labels) is None else "f1"
