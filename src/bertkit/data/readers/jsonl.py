"""JSONL corpora: one JSON object per line, with text in a field; newlines end paragraphs."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence

from bertkit.data.readers.document import Document, ReaderSettings, ReadReport
from bertkit.data.readers.sources import TextSource
from bertkit.data.readers.text import (
    LONG_BLANK_RUN,
    decode_text,
    replace_lone_surrogates,
    take_blank_lines,
)

RECORD_LIMIT_BYTES = 16 << 20
LINE_END = re.compile(r"\r\n?|\n")  # as in plain text; `splitlines` splits at eight more characters


def read_documents(
    source: TextSource, settings: ReaderSettings, report: ReadReport
) -> Iterator[Document]:
    """Yield a document for each record; each is its own group."""
    is_empty = True
    for place, content in read_records(source, report):
        is_empty = False
        try:
            record = json.loads(decode_text(content, place, report, source))
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            yield from document_of(record.get(settings.text_column), place, report)
        else:
            report.add("broken-json", place)
    if is_empty and not source.is_faulty:
        report.add("empty-file", source.name)


def read_records(source: TextSource, report: ReadReport) -> Iterator[tuple[str, bytes]]:
    """Yield non-blank lines with their places; lines over the limit are skipped and counted."""
    with source.open(report) as stream:
        number, num_blank = 1, 0
        while content := stream.readline(RECORD_LIMIT_BYTES):
            num_blank = num_blank + 1 if content.isspace() else 0
            if len(content) == RECORD_LIMIT_BYTES and not content.endswith(b"\n"):
                report.add("long-record", f"{source.name}:{number:,}")
                while content and not content.endswith(b"\n"):
                    content = stream.readline(RECORD_LIMIT_BYTES)
            elif not num_blank:
                yield f"{source.name}:{number:,}", content
            number += 1
            if num_blank >= LONG_BLANK_RUN:
                number += take_blank_lines(stream).count(b"\n")


def document_of(value: object, place: str, report: ReadReport) -> Iterator[Document]:
    """Yield the document in one field of a record, if it is usable."""
    if value is None:
        report.add("missing-field", place)
    elif not isinstance(value, str):
        report.add("wrong-type", place)
    else:
        if "\0" in value:
            report.add("nul", place)
            value = value.replace("\0", "")
        value = replace_lone_surrogates(value, place, report)
        lines = tuple(line.strip() for line in LINE_END.split(value) if line.strip())
        if lines:
            yield Document(lines, place)
        else:
            report.add("empty-document", place)


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


def read_texts(
    source: TextSource, settings: ReaderSettings, report: ReadReport
) -> Iterator[Document]:
    """Yield a document for each text; each is its own group."""
    for number, text in enumerate(source.texts, start=1):
        if source.advance is not None:
            source.advance(len(text))
        yield from document_of(text, f"{source.name}:{number:,}", report)
