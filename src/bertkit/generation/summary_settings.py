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
        description="Sentences of a summary, where neither share nor words are given; by default 3,"
        " or as many as a model was trained to take.",
    )
    share: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="Share of the sentences that may be taken, such as 0.2; at least one sentence,"
        f" and at most {MAX_SENTENCES:,}.",
    )
    words: Annotated[int, Field(ge=1)] | None = Field(
        None,
        description="Most words of a summary. Where no sentence has so few, the shortest is taken."
        " In scripts that put no blanks between words, characters are counted.",
    )
    diversity: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None,
        description="How much a sentence that repeats another is worth less, from 0 to 1; by"
        " default 0.3. For encoders: a model of `bertkit finetune extract` takes no two sentences"
        " that have three words in a row in common.",
    )
    position: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0,
        description="How much it counts that a sentence stands early, from 0 to 1: news says the"
        " most at its beginning.",
    )
    language: str | None = Field(
        None,
        description="ISO 639-1 code, for finding sentences; by default en, or that which a model"
        " was trained on.",
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
