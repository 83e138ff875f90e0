"""Corpus readers: any source → documents of lines.

A reader is a function `(source, settings, report) → documents`. Most read a file through
`source.open(report)`; one whose text isn't in a file, such as `python-docs:`, has a source without
a path. To add one, write a module beside these and a line in `READERS`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bertkit.data.readers import jsonl, mediawiki, parquet, python_docs, text
from bertkit.data.readers.document import Document, ReadReport
from bertkit.data.readers.settings import ReaderSettings
from bertkit.data.readers.sources import TextSource, find_sources

Reader = Callable[[TextSource, ReaderSettings, ReadReport], Iterator[Document]]

READERS: dict[str, Reader] = {
    "text": text.read_documents,
    "jsonl": jsonl.read_documents,
    "parquet": parquet.read_documents,
    "mediawiki": mediawiki.read_documents,
    "python-docs": python_docs.read_documents,
}


@dataclass
class Corpus:
    """Everything that was named on a command line, as one stream of documents.

    Attributes:
        sources: files and other sources, in the order in which they are read.
        settings: how they are read.
        report: what was odd, counted as reading goes on.
        advance: is told how many bytes of the sources were read, for progress.
    """

    sources: Sequence[TextSource]
    settings: ReaderSettings
    report: ReadReport = field(default_factory=ReadReport)
    advance: Callable[[int], None] | None = None

    @property
    def size_bytes(self) -> int | None:
        """Bytes of all files as they lie on disk; None where a source isn't a file."""
        sizes = [source.size_bytes for source in self.sources]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def documents(self) -> Iterator[Document]:
        """All documents, one after the other."""
        for source in self.sources:
            yield from read_source(source, self.settings, self.report, self.advance)


def open_corpus(inputs: Sequence[str], settings: ReaderSettings) -> Corpus:
    """Find what is to be read.

    Args:
        inputs: files, folders, globs, `-` for standard input, or `python-docs:`.
        settings: how they are read.
    """
    return Corpus(find_sources(inputs, settings), settings)


def read_source(
    source: TextSource,
    settings: ReaderSettings,
    report: ReadReport,
    advance: Callable[[int], None] | None = None,
) -> Iterator[Document]:
    """The documents of one source; a damaged one ends where it can't be read any further."""
    source.advance = advance
    report.is_strict = settings.strict
    if source.refusal is not None:
        source.count_fault(report, *source.refusal)
        return
    yield from READERS[source.format](source, settings, report)
