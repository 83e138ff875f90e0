"""Plain text corpora: one sentence or paragraph per line, a blank line between documents.

Source: the convention of google-research/bert's `create_pretraining_data.py`.
"""

import io
from collections.abc import Iterator
from typing import NamedTuple

from bertkit.data.readers.document import Document, ReaderSettings, ReadReport
from bertkit.data.readers.sources import TextSource
from bertkit.tokenization.words import SURROGATE

LINE_LIMIT_BYTES = 1 << 20
LONG_BLANK_RUN = 64  # lines after which scanning the whole buffer pays off
WHITE_SPACE = (b" ", b"\t", b"\r")
CONTINUATION_MASK, CONTINUATION_BYTE = 0xC0, 0x80  # UTF-8 bytes inside a character


class Line(NamedTuple):
    """A line without its line end; a NamedTuple because a dataclass is slow for so many."""

    text: str  # stripped, with NULs removed and invalid UTF-8 replaced
    place: str  # file and line, for messages


def read_lines(source: TextSource, report: ReadReport) -> Iterator[Line]:
    """Yield the decoded lines of a source; those over 1 MiB are split at white space.

    A blank line has an empty text. Of consecutive lines of ASCII white space only the first is
    yielded. Each line of other white space, such as U+3000, is yielded, also with an empty text.
    Lines of only NULs are skipped, because they must not end a document.
    """
    is_empty, is_blank = True, False
    for number, content in read_raw_lines(source, report):
        was_blank, is_blank = is_blank, not content.strip()
        if is_blank and was_blank:
            continue
        is_empty = is_empty and is_blank
        place = f"{source.name}:{number:,}"
        text = decode_text(content, place, report, source).strip()
        if text or b"\0" not in content:
            yield Line(text, place)
    if is_empty and not source.is_faulty:
        report.add("empty-file", source.name)


def read_raw_lines(source: TextSource, report: ReadReport) -> Iterator[tuple[int, bytes]]:
    """Yield numbered lines; a line over the limit is split into pieces with the same number.

    A line ends with LF, CR LF or CR. Pieces of white space are dropped, since they aren't blank
    lines. Of many consecutive blank lines, only the first few are yielded.
    """
    with source.open(report) as stream:
        rest, number, is_cut, num_blank = b"", 1, False, 0
        while piece := stream.readline(LINE_LIMIT_BYTES):
            content, rest = rest + piece, b""
            lines = content.splitlines(keepends=True)
            if len(content) >= LINE_LIMIT_BYTES and not piece.endswith(b"\n"):
                rest = lines.pop()
            for line in lines:
                if not is_cut or line.strip():
                    yield number, line
                number, is_cut = number + 1, False
            num_blank = num_blank + 1 if content.isspace() and not rest else 0
            if num_blank >= LONG_BLANK_RUN:
                number += len(take_blank_lines(stream).splitlines())
            if len(rest) >= LINE_LIMIT_BYTES and not rest.strip():
                rest = b" "
            elif len(rest) >= LINE_LIMIT_BYTES:
                if not is_cut:
                    report.add("long-line", f"{source.name}:{number:,}")
                is_cut = True
                content, rest = cut_at_white_space(rest)
                yield number, content
        if rest:
            yield number, rest


def take_blank_lines(stream: io.BufferedReader) -> bytes:
    """Read and return the whitespace-only lines at the start of a stream's buffer."""
    buffered = stream.peek()
    num_blank_bytes = len(buffered) - len(buffered.lstrip())
    return stream.read(buffered.rfind(b"\n", 0, num_blank_bytes) + 1)


def decode_text(
    content: bytes, place: str, report: ReadReport, source: TextSource | None = None
) -> str:
    """Decode a line or record; invalid UTF-8 is replaced, NULs are removed, both are counted.

    By its source it is recognized that a text is in another encoding.
    """
    if b"\0" in content:
        report.add("nul", place)
        content = content.replace(b"\0", b"")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        report.add("invalid-utf8", place)
        if source is not None:
            source.decoding.add_invalid(content, place, error)
            source.check_decodable(source.decoding, is_whole=False)
        return content.decode("utf-8", errors="replace")
    if source is not None:  # as `add_valid`, whose call would take twice as long
        counts = source.decoding
        counts.num_lines += 1
        if not text.isascii():
            counts.num_non_ascii += 1
    return text


def replace_lone_surrogates(text: str, place: str, report: ReadReport) -> str:
    """Replace and count lone surrogates, which invalid escapes can produce."""
    if SURROGATE.search(text):
        report.add("invalid-utf8", place)
        text = SURROGATE.sub("\ufffd", text)
    return text


def cut_at_white_space(content: bytes) -> tuple[bytes, bytes]:
    """Split at the last white space near the end if possible, else between characters."""
    searched = len(content) - len(content) // 8
    cut = max(content.rfind(space, searched) for space in WHITE_SPACE)
    if cut < 0:
        cut = len(content) - 1
        while cut > len(content) - 4 and content[cut] & CONTINUATION_MASK == CONTINUATION_BYTE:
            cut -= 1
    return content[:cut], content[cut:]


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
