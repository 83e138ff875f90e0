"""Multiple choice: answers to a question, or endings of a story; read `task.py` first.

Source: Devlin et al. 2018, section 4.4 (SWAG): one score for each C, a softmax over the choices.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from bertkit.base.errors import InputError
from bertkit.tasks.settings import (
    ContextColumn,
    LabelColumn,
    QuestionColumn,
    TaskInputs,
    TaskSettings,
)

MIN_CHOICES, MAX_CHOICES = 2, 64


class ChooseSettings(TaskSettings):
    """Settings of multiple choice."""

    context_column: ContextColumn = None
    question_column: QuestionColumn = None
    choices_column: str | None = Field(
        default=None,
        description="Column of a list of choices, or the common prefix of numbered columns. By"
        " default choices, endings, options, or ending0, ending1 …,"
        " choice0 …, option0 ….",
    )
    label_column: LabelColumn = None

    @property
    def most_tokens(self) -> int:
        """The most tokens that are read of an example, a sequence for each choice."""
        return self.max_length * MAX_CHOICES


class ChooseInputs(TaskInputs):
    """Contexts, and the choices that all of them have."""

    words: ClassVar[str] = "Contexts"
    example: ClassVar[str] = '"She opened the umbrella." --choice "It rained." --choice "It sang."'
    example_file: ClassVar[str] = "questions.jsonl"

    choice: tuple[str, ...] | None = Field(
        default=None, description="A choice; repeat the flag for each."
    )
    question: str | None = Field(
        default=None, description="The question, or the beginning that each choice continues."
    )

    def gather(self, words: Sequence[str]) -> list[Any]:
        """Return each context with the choices."""
        choices = self.choice or ()
        if words and len(choices) < MIN_CHOICES:
            raise InputError("give at least two choices, each with --choice")
        return [{"context": word, "question": self.question, "choices": choices} for word in words]
