"""Plain text corpora: one sentence or paragraph per line, a blank line between documents.

Source: the convention of google-research/bert's `create_pretraining_data.py`.
"""

from collections.abc import Iterator

from bertkit.data.readers.document import Document, ReadReport
from bertkit.data.readers.lines import read_lines
from bertkit.data.readers.settings import ReaderSettings
from bertkit.data.readers.sources import TextSource

# Longer documents are split, so that memory stays bounded.
DOCUMENT_LIMIT_CHARACTERS = 4 << 20


def read_documents(
    source: TextSource, settings: ReaderSettings, report: ReadReport
) -> Iterator[Document]:
    """Yield the documents of a text file; each is its own group."""
    lines: list[str] = []
    size, number, is_cut = 0, 0, False
    for line in read_lines(source, report):
        if line.text:
            lines.append(line.text)
            size += len(line.text)
            if size > DOCUMENT_LIMIT_CHARACTERS:
                if not is_cut:
                    report.add("long-document", line.place)
                yield Document(tuple(lines), f"{source.name}#{number}")
                lines, size, is_cut = [], 0, True
        elif lines or is_cut:
            if lines:
                yield Document(tuple(lines), f"{source.name}#{number}")
            lines, size, number, is_cut = [], 0, number + 1, False
    if lines:
        yield Document(tuple(lines), f"{source.name}#{number}")
