"""Settings of an evaluation."""

from typing import Literal

from pydantic import Field

from bertkit.data.tables.settings import RecordSettings


class EvaluateSettings(RecordSettings):
    """Settings of `bertkit evaluate`."""

    split: Literal["train", "dev", "test"] = Field(
        "dev", description="Split of a GLUE folder or of a data set on the Hub."
    )
    overwrite: bool = Field(
        False, description="Replace the files of an earlier evaluation in the output."
    )
