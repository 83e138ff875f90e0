"""Settings for reading a file of texts or of labeled records."""

from typing import Literal

from pydantic import Field, PositiveInt, field_validator

from bertkit.base.settings import in_panel
from bertkit.data.encodings import READING, EncodingSettings

TableFormat = Literal["auto", "text", "json", "jsonl", "csv", "tsv", "parquet"]
RecordFormat = Literal[TableFormat, "conll", "squad"]
NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


@in_panel(*READING)
class FileSettings(EncodingSettings):
    """How the bytes of a file become cells."""

    delimiter: str | None = Field(
        default=None,
        description="Separator of CSV cells: one character, or tab. By default a comma, or the"
        " semicolon, tab or vertical bar that a header without commas has.",
    )

    @field_validator("delimiter")
    @classmethod
    def _delimiter_is_one_character(cls, value: str | None) -> str | None:
        value = NAMED_DELIMITERS.get(value or "", value)
        if value is not None and (len(value) != 1 or value in '"\r\n'):
            raise ValueError("must be one character, or tab, comma, semicolon or pipe")
        return value


class TableSettings(FileSettings):
    """Settings of every command that reads a file of texts."""

    format: TableFormat = Field(
        default="auto",
        description="Format of the input; auto uses the file extension, and takes standard"
        " input as plain text.",
    )
    text_column: str | None = Field(
        default=None,
        description="Column of CSV, TSV and Parquet, or field of JSONL, that has the text; by"
        " default the only one, or else the one named text.",
    )


class CorpusSettings(TableSettings):
    """Settings of commands that read texts to be found again."""

    id_column: str | None = Field(
        default=None,
        description="Column of CSV, TSV and Parquet, or field of JSONL, that has the id of a text;"
        " results then show it. By default texts are known by their row, and those of several"
        " files by file and row.",
    )


@in_panel(*READING)
class LayoutSettings(FileSettings):
    """Settings of every command that reads records, whether they have answers or not."""

    format: RecordFormat = Field(
        default="auto",
        description="Format of the data; auto uses the file extension, and takes"
        " standard input as plain text with one text per line.",
    )
    header: bool = Field(
        default=True,
        description="Whether the first row of CSV and TSV has the column names; otherwise columns"
        " are named 1, 2, 3 …",
    )
    decimal: Literal[".", ","] = Field(
        default=".", description="Decimal separator of numbers that are stored as text, as in CSV."
    )
    token_column: PositiveInt | None = Field(
        default=None,
        description="Column of CoNLL that has the words, counted from 1; by default the first, or"
        " FORM of CoNLL-U.",
    )
    tag_column: PositiveInt | None = Field(
        default=None,
        description="Column of CoNLL that has the tags, counted from 1; by default the last, or"
        " UPOS of CoNLL-U.",
    )


@in_panel(*READING)
class RecordSettings(LayoutSettings):
    """Settings of every command that reads labeled records."""

    max_broken: float = Field(
        default=0.01,
        ge=0,
        le=1,
        description="Largest share of a file's rows that may be broken; broken rows are left out."
        " If more are broken, it is an error.",
    )
