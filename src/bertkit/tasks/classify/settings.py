"""What can be chosen about labelling texts."""

from pydantic import Field

from bertkit.tasks.settings import TaskSettings


class ClassifySettings(TaskSettings):
    """Settings of the task classify."""

    text_column: str | None = Field(
        None, description="Column of the text; by default text, sentence or premise."
    )
    pair_column: str | None = Field(
        None, description="Column of a second text, for pairs; by default none is read."
    )
    label_column: str | None = Field(None, description="Column of the label; by default label.")
