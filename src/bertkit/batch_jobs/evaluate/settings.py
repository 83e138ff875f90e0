"""Settings of an evaluation."""

from typing import Literal

from pydantic import Field

from bertkit.data.tables.settings import RecordSettings


class EvaluateSettings(RecordSettings):
    """Settings of `bertkit evaluate`."""

    split: Literal["train", "dev", "test"] = Field(
        "dev", description="Part of a GLUE folder or of a data set of the Hub."
    )
    overwrite: bool = Field(False, description="Replace files of an evaluation in the output.")
