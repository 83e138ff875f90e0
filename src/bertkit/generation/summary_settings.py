"""Settings of extractive summaries."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from bertkit.base.settings import Settings

DEFAULT_SENTENCES, DEFAULT_DIVERSITY, DEFAULT_LANGUAGE = 3, 0.3, "en"
LENGTHS = ("sentences", "share", "words")
MAX_SENTENCES = 1000  # per summary; each one is compared with all sentences of the text


class SummarySettings(Settings):
    """How long a summary is, and how its sentences are chosen."""

    sentences: Annotated[int, Field(ge=1, le=MAX_SENTENCES)] | None = Field(
        None,
        description="Sentences of a summary, if neither share nor words are given; by default 3,"
        " or the number that a model was trained with.",
    )
    share: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="Share of the sentences to extract, such as 0.2; at least one sentence, and at"
        f" most {MAX_SENTENCES:,}.",
    )
    words: Annotated[int, Field(ge=1)] | None = Field(
        None,
        description="Maximum words of a summary. If no sentence is short enough, the shortest is"
        " taken. In scripts without spaces between words, characters are counted.",
    )
    diversity: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None,
        description="Penalty for sentences similar to ones already taken, from 0 to 1; by default"
        " 0.3. Only for encoders: a model of `bertkit finetune extract` never takes two sentences"
        " that share three consecutive words.",
    )
    position: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0,
        description="Weight of a sentence's position, from 0 to 1: useful for news, whose first"
        " sentences matter most.",
    )
    language: str | None = Field(
        None,
        description="ISO 639-1 code, for sentence splitting; by default en, or the language that a"
        " model was trained on.",
    )

    @property
    def has_length(self) -> bool:
        """Whether a summary length is set."""
        return any(getattr(self, name) is not None for name in LENGTHS)

    @model_validator(mode="after")
    def _has_one_length(self) -> Self:
        given = [name for name in LENGTHS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other; give one of them")
        return self
