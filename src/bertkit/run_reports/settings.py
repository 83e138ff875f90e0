"""What can be chosen about a report."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from bertkit.base.settings import Settings


class ReportSettings(Settings):
    """Settings of `bertkit report`."""

    data: Path | None = Field(
        None,
        description="Shards that a pre-training run was trained on: the report tells what they"
        " hold, and takes its examples from their held-out part. Those beside a run are found.",
    )
    text: tuple[str, ...] = Field(
        (),
        description="A text with [MASK] to be filled by a pre-training run, or for one that reads"
        " left to right a beginning; may be repeated.",
    )
    examples: bool = Field(
        True,
        description="Let the newest checkpoint of a pre-training run fill some blanks, or go on"
        " with some texts.",
    )
    overwrite: bool = Field(False, description="Replace a report that exists.")

    @model_validator(mode="after")
    def _texts_are_examples(self) -> Self:
        if self.text and not self.examples:
            raise ValueError("text is for the examples; leave out --no-examples, or the texts")
        return self
