"""Settings of the task regress."""

from pydantic import Field

from bertkit.tasks.settings import TextSettings


class RegressSettings(TextSettings):
    """Settings of the task regress."""

    label_column: str | None = Field(
        None,
        description="Column of the number; by default label, labels, score,"
        " similarity or similarity_score.",
    )
