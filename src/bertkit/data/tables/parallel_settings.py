"""Settings for reading text pairs: two files of lines, or one with a column for each side."""

from typing import Literal

from pydantic import Field

from bertkit.data.tables.settings import FileSettings, RecordSettings

PairFormat = Literal["auto", "jsonl", "csv", "tsv", "parquet"]


class PairSettings(FileSettings):
    """Settings of every command that reads texts in pairs."""

    format: PairFormat = Field(
        "auto",
        description="Format of one file that has both sides; auto uses the file extension."
        " Two files are plain text with one text per line.",
    )
    header: bool = Field(
        True,
        description="Whether the first row of CSV and TSV has the column names; otherwise columns"
        " are named 1, 2, 3 …",
    )
    source_column: str = Field(
        "source",
        description="Column with the source texts; translation.de is the field de of translation.",
    )
    target_column: str = Field("target", description="Column with the target texts.")
    max_broken: float = Field(
        0.01,
        ge=0,
        le=1,
        description="Largest share of a file's rows that may be broken; broken rows are left out."
        " If more are broken, it is an error.",
    )

    def record_settings(self) -> RecordSettings:
        """Return the settings for reading one file with columns."""
        return RecordSettings(**self.model_dump(include=set(RecordSettings.model_fields)))
