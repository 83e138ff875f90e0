"""Settings for reading text pairs: two files of lines, or one with a column for each side."""

from typing import Literal

from pydantic import Field

from bertkit.base.settings import Settings
from bertkit.data.tables.settings import RecordSettings

PairFormat = Literal["auto", "jsonl", "csv", "tsv", "parquet"]


class PairSettings(Settings):
    """Settings of every command that reads texts in pairs."""

    format: PairFormat = Field(
        "auto",
        description="Format of one file that has both sides; auto goes by the ending of its name."
        " Two files are text, a line a text.",
    )
    header: bool = Field(
        True,
        description="Whether the first row of CSV and TSV names the columns; else they are called"
        " 1, 2, 3 …",
    )
    source_column: str = Field(
        "source",
        description="Column that has the texts to be read; translation.de is de in translation.",
    )
    target_column: str = Field("target", description="Column that has the texts to be written.")
    max_broken: float = Field(
        0.01,
        ge=0,
        le=1,
        description="Share of a file's rows that may be broken and left out; more are an error.",
    )

    def record_settings(self) -> RecordSettings:
        """Return the settings for reading one file with columns."""
        return RecordSettings(format=self.format, header=self.header, max_broken=self.max_broken)
