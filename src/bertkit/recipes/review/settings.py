"""Settings of `bertkit review`."""

from typing import Annotated

from pydantic import Field

from bertkit.base.settings import Count, redefine
from bertkit.data.tables.settings import RecordSettings
from bertkit.recipes.settings import EvaluateSettings
from bertkit.tasks.classify import ClassifySettings


class ReviewSettings(RecordSettings):
    """Settings of `bertkit review`."""

    multi_label: bool = redefine(ClassifySettings, "multi_label")
    label_separator: Annotated[str, Field(min_length=1)] = redefine(
        ClassifySettings, "label_separator"
    )
    next: Count | None = Field(
        default=None,
        description="Suggest this many rows to label next: DATA is then rows without labels, and"
        " --model a fine-tuned model.",
    )
    overwrite: bool = redefine(EvaluateSettings, "overwrite")
