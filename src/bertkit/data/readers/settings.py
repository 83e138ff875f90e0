"""Settings for reading a corpus."""

from typing import Literal

from pydantic import Field

from bertkit.data.encodings import EncodingSettings

Format = Literal["auto", "text", "jsonl", "parquet", "mediawiki"]


class ReaderSettings(EncodingSettings):
    """Settings of every command that reads a corpus."""

    format: Format = Field(
        "auto", description="Format of all inputs; auto uses the file extensions."
    )
    text_column: str = Field(
        "text", description="Field of JSONL, or column of Parquet, that has the text."
    )
    strict: bool = Field(
        False, description="Stop at the first problem in the input, and report its file and line."
    )
