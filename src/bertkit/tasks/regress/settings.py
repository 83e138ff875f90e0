"""Settings of regression."""

from pydantic import Field

from bertkit.tasks.settings import TextSettings


class RegressSettings(TextSettings):
    """Settings of regression."""

    label_column: str | None = Field(
        None,
        description="Column of the number; by default label, labels, score,"
        " similarity or similarity_score.",
    )
