"""Tagging of words: named entities, parts of speech; read `task.py` first.

Source: Devlin et al. 2018, section 5.3: T_i of a word's first piece, then a linear layer.
"""

from typing import Annotated, Literal

from pydantic import Field

from bertkit.tasks.settings import TaskSettings


class TagSettings(TaskSettings):
    """Settings of tagging words."""

    words_column: str | None = Field(
        default=None, description="Column of a list of words; by default tokens or words."
    )
    tags_column: str | None = Field(
        default=None, description="Column of a list of tags; by default tags, ner_tags or pos_tags."
    )
    scheme: Literal["auto", "entities", "plain"] = Field(
        default="auto",
        description="entities: tags such as B-PER, I-PER and O mark entities of several words;"
        " plain: words have independent tags; auto decides by the tags.",
    )
    context: Annotated[int, Field(ge=0)] = Field(
        default=32,
        description="Tokens shared by two windows of a long sentence, at most half a window; each"
        " word is tagged in the window with more context.",
    )
