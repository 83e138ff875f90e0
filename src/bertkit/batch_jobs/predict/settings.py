"""Settings for predicting the rows of a file."""

from typing import Literal

from pydantic import Field

from bertkit.data.tables.settings import LayoutSettings

Split = Literal["train", "dev", "test"]


class PredictSettings(LayoutSettings):
    """Settings of `bertkit <task>`."""

    split: Split = Field("test", description="Split of a GLUE folder or of a data set on the Hub.")
    id_column: str | None = Field(
        None,
        description="Column that identifies a row, for the key id of --json; by default the row's"
        " number, from 1.",
    )
    keep_columns: tuple[str, ...] | None = Field(
        None,
        description="Columns of the file to write in front of the predictions; by default all.",
    )
    overwrite: bool = Field(False, description="Replace an existing output.")
