"""The command-line inputs of a task's command, known without loading torch."""

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from bertkit.base.settings import Settings


class TaskInputs(Settings):
    """Flags of `bertkit <task>` that are inputs, beside the words; here none is.

    Attributes:
        words: what the words are, for `--help`.
        example: words and flags of a call, for the same.
        example_file: a file's name, for the same.
    """

    words: ClassVar[str] = "Texts"
    example: ClassVar[str] = '"A gripping film."'
    example_file: ClassVar[str] = "texts.txt"

    def gather(self, words: Sequence[str]) -> list[Any]:
        """Return inputs as the task's `make_example` takes them, in the order of the words."""
        return list(words)


class PairInputs(TaskInputs):
    """A text, or each of several, perhaps with a second one."""

    pair: str | None = Field(None, description="Second text, for models of text pairs.")

    def gather(self, words: Sequence[str]) -> list[Any]:
        """Return texts, or tuples of two."""
        return list(words) if self.pair is None else [(word, self.pair) for word in words]
