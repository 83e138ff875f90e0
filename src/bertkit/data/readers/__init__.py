"""Corpus readers: from any source to documents of lines.

A reader is a function `(source, settings, report) → documents`, which reads a file through
`source.open(report)`. To add a reader, write a module in this folder and add it to `READERS`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bertkit.data.readers import jsonl, mediawiki, parquet, text
from bertkit.data.readers.document import Document, ReaderSettings, ReadReport
from bertkit.data.readers.jsonl import CorpusInput
from bertkit.data.readers.sources import TextSource, find_sources

Reader = Callable[[TextSource, ReaderSettings, ReadReport], Iterator[Document]]

READERS: dict[str, Reader] = {
    "text": text.read_documents,
    "jsonl": jsonl.read_documents,
    "parquet": parquet.read_documents,
    "mediawiki": mediawiki.read_documents,
    "memory": jsonl.read_texts,
}


@dataclass
class Corpus:
    """All inputs of a command as one stream of documents."""

    sources: Sequence[TextSource]  # files and others, in reading order
    settings: ReaderSettings
    report: ReadReport = field(default_factory=ReadReport)
    # called with the number of bytes read, for progress
    advance: Callable[[int], None] | None = None

    @property
    def size_bytes(self) -> int | None:
        """Total size of the files on disk; None if any source isn't a file."""
        sizes = [source.size_bytes for source in self.sources]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def documents(self) -> Iterator[Document]:
        """Yield the documents of all sources in order."""
        for source in self.sources:
            yield from read_source(source, self.settings, self.report, self.advance)
        self.report.check_decodable(self.settings.encoding, is_whole=True)


def open_corpus(
    inputs: Sequence[CorpusInput],
    settings: ReaderSettings,
    held_out_inputs: Sequence[CorpusInput] = (),
) -> Corpus:
    """Find the sources of a corpus.

    The inputs are files, folders, globs, `-` for standard input, or texts as returned by
    `memory_source`. All documents of the held-out ones are held out.
    """
    return Corpus(find_sources(inputs, settings, held_out_inputs), settings)


def read_source(
    source: TextSource,
    settings: ReaderSettings,
    report: ReadReport,
    advance: Callable[[int], None] | None = None,
) -> Iterator[Document]:
    """Yield the documents of one source, up to the point where it is damaged."""
    source.advance = advance
    report.is_strict = settings.strict
    if source.refusal is not None:
        source.count_fault(report, *source.refusal)
        return
    yield from READERS[source.format](source, settings, report)
    source.check_decodable(source.decoding, is_whole=True)
    report.decoding.add(source.decoding)
    report.check_decodable(settings.encoding, is_whole=False)
