"""Settings shared by all tasks, and by tasks on texts or pairs."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertkit.base.settings import Settings

LEAST_WINDOW = 8  # tokens: [CLS], two [SEP], and at least two of each text

Count = Annotated[int, Field(ge=1)]


class TaskSettings(Settings):
    """Settings of a task: they belong to the model, and are stored with it."""

    max_length: Annotated[int, Field(ge=3)] = Field(
        128, description="Tokens of a sequence, with [CLS] and [SEP]."
    )


class TextSettings(TaskSettings):
    """Columns of texts, and what becomes of those that are too long."""

    text_column: str | None = Field(
        None,
        description="Column of the text, or of the first of two; by default text, sentence,"
        " premise, sentence1, question1, question or text1.",
    )
    pair_column: str | None = Field(
        None,
        description="Column of a second text. By default that which belongs to the first one, where"
        " text_column isn't given either: hypothesis to premise, sentence2 to sentence1, question2"
        " to question1, sentence to question, text2 to text1.",
    )
    pairs: bool = Field(
        False,
        description="Whether every text must have a second one. A model that was trained on pairs"
        " asks for both ever after.",
    )
    long_texts: Literal["head", "tail", "head_tail", "windows"] = Field(
        "head",
        description="What is read of a text of more than max_length tokens: its beginning, its end,"
        " a quarter from the beginning and the rest from the end, or all of it in windows whose"
        " scores are averaged. Of a pair it is the longer text that is cut, or read in windows.",
    )
    stride: Count | None = Field(
        None,
        description="Tokens between the beginnings of two windows; by default half of what fits"
        " into one.",
    )
    max_windows: Count = Field(
        32, description="Windows of a text at most; what is behind them isn't read."
    )

    @model_validator(mode="after")
    def _windows_have_room(self) -> Self:
        if self.long_texts == "windows" and self.max_length < LEAST_WINDOW:
            raise ValueError(
                f"max_length ({self.max_length}) must be at least {LEAST_WINDOW} for windows"
            )
        return self
