"""Settings of `bertkit evaluate`, `report` and `prepare`."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertkit.base.settings import Settings
from bertkit.data.sources import ReaderSettings
from bertkit.data.tables.settings import RecordSettings


class EvaluateSettings(RecordSettings):
    """Settings of `bertkit evaluate`."""

    split: Literal["train", "dev", "test"] = Field(
        default="dev", description="Split of a GLUE folder or of a data set on the Hub."
    )
    overwrite: bool = Field(default=False, description="Replace an existing output.")


class ReportSettings(Settings):
    """Settings of `bertkit report`."""

    data: Path | None = Field(
        default=None,
        description="Folder of the shards that a pre-training run was trained on, for examples of"
        " its held-out text; needed unless it is named shards and beside the run.",
    )
    text: tuple[str, ...] = Field(
        default=(),
        description="A text that a pre-training run completes: with [MASK], or, for a run that"
        " continues texts, the beginning of one; may be repeated.",
    )
    examples: Annotated[int, Field(ge=0)] = Field(
        default=6,
        description="Number of held-out texts that the page shows a pre-training run complete.",
    )
    overwrite: bool = Field(default=False, description="Replace an existing output.")

    @model_validator(mode="after")
    def _texts_are_examples(self) -> Self:
        if self.text and not self.examples:
            raise ValueError("text is for the examples; leave out examples 0, or the texts")
        return self


class PrepareSettings(ReaderSettings):
    """Settings of `bertkit prepare`; all of them determine the content of the shards."""

    language: str = Field(
        default="en",
        pattern=r"^[a-z]{2,3}$",
        description="Language of the text, for splitting it into sentences.",
    )
    sentences: Literal["split", "lines"] = Field(
        default="split", description="Split each line into sentences, or treat it as one."
    )
    held_out: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.02,
        description="Share of the data to hold out for evaluation if --dev isn't given.",
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(
        default=0, description="Seed of all random choices."
    )
