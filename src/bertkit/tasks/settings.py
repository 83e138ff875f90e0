"""What can be chosen about every task."""

from typing import Annotated

from pydantic import Field

from bertkit.base.settings import Settings


class TaskSettings(Settings):
    """Settings of a task: they belong to the model, and are stored with it."""

    max_length: Annotated[int, Field(ge=3)] = Field(
        128, description="Tokens of a sequence, with [CLS] and [SEP]."
    )
