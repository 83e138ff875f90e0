"""Settings for predicting the rows of a file."""

from typing import Literal

from pydantic import Field

from bertkit.data.tables.settings import LayoutSettings

Split = Literal["train", "dev", "test"]


class PredictSettings(LayoutSettings):
    """Settings of `bertkit <task>`."""

    split: Split = Field("test", description="Split of a GLUE folder or of a data set on the Hub.")
    overwrite: bool = Field(False, description="Replace an existing output.")
