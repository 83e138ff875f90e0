"""Extractive summarization: select the sentences that make a summary; read `task.py` first.

Source: Liu 2019, "Fine-tune BERT for Extractive Summarization".
"""

from typing import Annotated, ClassVar

from pydantic import Field

from bertkit.tasks.settings import TaskInputs, TaskSettings


class ExtractSettings(TaskSettings):
    """Settings of extractive summarization."""

    max_length: Annotated[int, Field(ge=8)] = Field(
        default=512,
        description="Maximum tokens of a sequence; longer texts are split into several, at"
        " sentence boundaries.",
    )
    text_column: str | None = Field(
        default=None, description="Column of the text; by default text, article or document."
    )
    summary_column: str | None = Field(
        default=None,
        description="Column of the reference summary; by default summary, highlights or abstract.",
    )
    sentences: Annotated[int, Field(ge=1, le=100)] = Field(
        default=3, description="Number of sentences of a summary, in training and in predictions."
    )
    language: str = Field(default="en", description="ISO 639-1 code, for sentence splitting.")


class ExtractInputs(TaskInputs):
    """Texts."""

    example: ClassVar[str] = '"A storm came. It closed the port. Ships waited. Nobody was hurt."'
    example_file: ClassVar[str] = "articles.jsonl"
