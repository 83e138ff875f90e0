"""Settings of run reports."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from bertkit.base.settings import Settings


class ReportSettings(Settings):
    """Settings of `bertkit report`."""

    data: Path | None = Field(
        None,
        description="Shards of a pre-training run: the report describes them and takes its"
        " examples from their held-out part. By default those beside the run.",
    )
    text: tuple[str, ...] = Field(
        (),
        description="A text with [MASK] for a pre-training run to fill, or a text for a"
        " left-to-right run to continue; may be repeated.",
    )
    examples: bool = Field(
        True,
        description="Show blanks that the newest checkpoint of a pre-training run fills, or texts"
        " that it continues.",
    )
    overwrite: bool = Field(False, description="Replace an existing report.")

    @model_validator(mode="after")
    def _texts_are_examples(self) -> Self:
        if self.text and not self.examples:
            raise ValueError("text is for the examples; leave out --no-examples, or the texts")
        return self
