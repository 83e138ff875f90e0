"""Extractive question answering, with "no answer" as in SQuAD 2.0; read `task.py` first.

Source: Devlin et al. 2018, sections 4.2 and 4.3: a start and an end vector over all T_i.
"""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertkit.base.errors import InputError
from bertkit.base.settings import NO_FLAG, Count
from bertkit.tasks.settings import (
    ContextColumn,
    LabelColumn,
    QuestionColumn,
    TaskInputs,
    TaskSettings,
)
from bertkit.tokenization.long_texts import LongTextSettings

LEAST_SPECIAL = 3  # [CLS] question [SEP] context [SEP]; some tokenizers have more
STRIDE, QUESTION_LENGTH = 128, 64  # by default, as in google-research/bert


class AnswerSettings(LongTextSettings, TaskSettings):
    """Settings of extractive question answering; the defaults are those of google-research/bert."""

    max_length: Annotated[int, Field(ge=5)] = Field(
        default=384,
        description="Maximum tokens of a text or window, with special tokens.",
    )
    long_texts: Literal["truncate", "windows"] = Field(
        default="windows",
        description="What is read of contexts longer than --max-length: truncate, their beginning;"
        " windows, all of them, in windows that overlap.",
    )
    stride: Count | None = Field(
        default=None,
        description="Tokens between the starts of two windows, at most a window; by default"
        f" {STRIDE}.",
    )
    max_question_length: Annotated[Count | None, NO_FLAG] = Field(
        default=None,
        description="Maximum tokens of a question; longer ones are truncated. By default"
        f" {QUESTION_LENGTH}, or half of --max-length if that is less.",
    )
    max_answer_length: Annotated[Count, NO_FLAG] = Field(
        default=30, description="Tokens of an answer."
    )
    n_best: Annotated[int, Field(ge=2), NO_FLAG] = Field(
        default=20,
        description="Answers kept per question; as many start and end positions of each window are"
        " tried.",
    )
    version: Literal["auto", "1.1", "2.0"] = Field(
        default="auto",
        description="Rules of SQuAD: in 2.0 a question may have no answer. By default 2.0 if the"
        " training data has such questions.",
    )
    question_column: QuestionColumn = None
    context_column: ContextColumn = None
    label_column: LabelColumn = None
    usual_columns: ClassVar = {
        "question": ("question",),
        "context": ("context",),
        "label": ("answers", "answer"),
    }

    @property
    def most_tokens(self) -> int:
        """The most tokens that are read of an example; windows leave nothing out."""
        return sys.maxsize if self.long_texts == "windows" else self.max_length

    def choose_metric(self, labels: Sequence[str] = ()) -> str:
        """Return the F1 of words."""
        del labels
        return "f1"

    @model_validator(mode="after")
    def _context_has_room(self) -> Self:
        most = self.max_length - LEAST_SPECIAL - 1
        if self.max_question_length is not None and self.max_question_length > most:
            raise ValueError(
                f"`max_question_length` ({self.max_question_length}) leaves no room for the context"
                f" in `max_length` ({self.max_length}); it may be {most} at most"
            )
        return self

    @property
    def question_limit(self) -> int:
        """The maximum number of tokens of a question."""
        half = (self.max_length - LEAST_SPECIAL) // 2
        return self.max_question_length or min(QUESTION_LENGTH, half)


class AnswerInputs(TaskInputs):
    """Questions, and the text that has their answers."""

    words: ClassVar[str] = "Questions"
    example: ClassVar[str] = '"Who wrote it?" --context "Ada wrote it in 1843."'
    example_file: ClassVar[str] = "questions.jsonl"

    context: str | None = Field(
        default=None, description="Text that contains the answers to all questions."
    )

    def gather(self, words: Sequence[str]) -> list[Any]:
        """Return each question with the context."""
        if words and self.context is None:
            raise InputError("questions need a text that answers them: give it with --context")
        return [(word, self.context) for word in words]
