"""Texts from Python as a source: a document a text; line ends divide paragraphs."""

import hashlib
from collections.abc import Iterator, Sequence

from bertkit.data.readers.document import Document, ReadReport
from bertkit.data.readers.jsonl import document_of
from bertkit.data.readers.settings import ReaderSettings
from bertkit.data.readers.sources import TextSource

NAME = "texts"

CorpusInput = str | TextSource


def memory_source(texts: Sequence[str]) -> TextSource:
    """Return texts as a source; the SHA-256 tells other texts of the same length apart."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(f"{len(text)}:".encode() + text.encode(errors="surrogatepass"))
    return TextSource(
        NAME, "memory", size_bytes=sum(map(len, texts)), texts=texts, sha256=digest.hexdigest()
    )


def read_documents(
    source: TextSource, settings: ReaderSettings, report: ReadReport
) -> Iterator[Document]:
    """Yield a document for each text; each is its own group."""
    for number, text in enumerate(source.texts, start=1):
        if source.advance is not None:
            source.advance(len(text))
        yield from document_of(text, f"{source.name}:{number:,}", report)
