"""How a file of texts is read."""

from typing import Literal

from pydantic import Field

from bertkit.base.settings import Settings

TableFormat = Literal["auto", "text", "jsonl", "csv", "tsv", "parquet"]


class TableSettings(Settings):
    """Settings of every command that reads a file of texts."""

    format: TableFormat = Field(
        "auto",
        description="Format of the input; auto goes by the ending of its name, and takes standard"
        " input for text.",
    )
    field: str | None = Field(
        None,
        description="Column of CSV, TSV and Parquet, or field of JSONL, that has the text; by"
        " default the only one, else text.",
    )
