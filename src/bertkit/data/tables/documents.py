"""Reading whole documents: a plain text file is one document, in other files each row is."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bertkit.data.tables.decoder import MAX_ROW_BYTES
from bertkit.data.tables.opening import open_content
from bertkit.data.tables.settings import TableSettings
from bertkit.data.tables.texts import TextTable, open_texts


class WholeText(NamedTuple):
    """A document.

    Attributes:
        name: of the file, for messages.
        row: index in the file, from 0; None if the whole file is the text.
        text: may be empty; NULs are kept.
        is_undecodable: whether invalid Unicode was replaced by U+FFFD.
    """

    name: str
    row: int | None
    text: str
    is_undecodable: bool


def read_documents(
    source: str | Path, settings: TableSettings | None = None
) -> Iterator[WholeText]:
    """Yield the documents of a file (may be .gz, .bz2 or .zst), each of up to 16 MiB.

    Args:
        source: the file, or - for standard input.
        settings: its format, and the column that has the text.
    """
    table = open_texts(source, settings)
    if table.format == "text":
        yield _read_whole(table)
        return
    num_undecodable = 0
    for number, row in enumerate(table.rows()):
        is_undecodable = table.num_undecodable > num_undecodable
        num_undecodable = table.num_undecodable
        yield WholeText(table.name, number, row.text, is_undecodable)


def _read_whole(table: TextTable) -> WholeText:
    """Read a plain text file as one document."""
    decoder = table.decoder()
    with open_content(table.path, decoder) as stream:
        content = stream.read(MAX_ROW_BYTES + 1)
    decoder.check_size(len(content))
    text = decoder.decode(content)
    decoder.check_decodable(is_whole=True)
    return WholeText(table.name, None, text, decoder.report.num_undecodable > 0)
