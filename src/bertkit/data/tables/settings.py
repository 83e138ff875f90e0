"""Settings for reading a file of texts or of labeled records."""

from typing import Annotated, Literal

from cyclopts import Parameter
from pydantic import AfterValidator, Field

from bertkit.base.settings import Settings
from bertkit.data.encodings import OF_FILES, Encoding, MaxBroken

TableFormat = Literal["auto", "text", "json", "jsonl", "csv", "tsv", "parquet", "xlsx"]
RecordFormat = Literal[TableFormat, "conll", "squad"]
IdColumn = Annotated[
    str | None,
    Field(
        description="Column, or field of JSON, of the ids of rows, which results then show; by"
        " default rows are known by their numbers, and those of several files by file and number."
        " Those of an index are known by the column id if there is one; give '' to number them."
    ),
]
FORMAT = (
    "Format of the input; auto uses the file extension, and takes standard input as plain text."
)
NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


def _read_delimiter(value: str | None) -> str | None:
    value = NAMED_DELIMITERS.get(value or "", value)
    if value is not None and (len(value) != 1 or value in '"\r\n'):
        raise ValueError("must be one character, or tab, comma, semicolon or pipe")
    return value


Delimiter = Annotated[
    str | None,
    AfterValidator(_read_delimiter),
    OF_FILES,
    Field(
        description="Separator of CSV cells, such as ; or tab. By default a comma, or the"
        " semicolon, tab or vertical bar that a header without commas has.",
    ),
]


class TableSettings(Settings):
    """Settings of every command that reads a file of texts."""

    encoding: Encoding = None
    delimiter: Delimiter = None
    format: TableFormat = Field(default="auto", description=FORMAT)
    text_column: str | None = Field(
        default=None,
        description="Column, or field of JSON, of the texts; by default the only column, or text.",
    )


class CorpusSettings(TableSettings):
    """Settings of commands that read texts to be found again."""

    id_column: IdColumn = None


class LayoutSettings(Settings):
    """Settings of every command that reads records, whether they have answers or not."""

    encoding: Encoding = None
    delimiter: Delimiter = None
    format: Annotated[RecordFormat, OF_FILES] = Field(default="auto", description=FORMAT)
    header: Annotated[bool, OF_FILES] = Field(
        default=True,
        description="Whether the first row of CSV and TSV has the column names; otherwise columns"
        " are named 1, 2, 3 …",
    )
    decimal: Annotated[Literal[".", ","], OF_FILES] = Field(
        default=".", description="Decimal separator of numbers that are stored as text, as in CSV."
    )


class RecordSettings(LayoutSettings):
    """Settings of every command that reads labeled records."""

    max_broken: Annotated[
        MaxBroken, Parameter(show_default="0.01, or up to 5 rows, but not over a tenth")
    ] = 0.01
