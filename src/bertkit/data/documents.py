"""A corpus: the rows of any source joined into documents of lines.

In plain text a blank line ends a document, after the convention of google-research/bert's
`create_pretraining_data.py`; in other formats each row is a document, whose line ends end
paragraphs. Faults are counted and reading goes on, where a table would be refused.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from pydantic import JsonValue

from bertkit.base.errors import BertkitError, DamagedFileError, InputError, pluralize
from bertkit.base.remote import RemoteFile
from bertkit.data.compression import classify, read_plain, stream_pieces
from bertkit.data.encodings import find_content, is_binary, refuse_encoding
from bertkit.data.problems import ReadReport
from bertkit.data.sentences import ends_like_a_sentence
from bertkit.data.sources import CorpusInput, ReaderSettings, TextSource, find_sources
from bertkit.data.tables.decoder import MAX_ROW_BYTES, RowDecoder, open_content
from bertkit.data.tables.formats import FORMATS, jsonl, lines, mediawiki, parquet, separated
from bertkit.data.tables.record import Record, Rows
from bertkit.data.tables.settings import LayoutSettings
from bertkit.data.tables.texts import MEMORY

LINE_LIMIT_BYTES = 1 << 20
DOCUMENT_LIMIT_CHARACTERS = 4 << 20  # longer ones are split, so that memory stays bounded
LINE_END = re.compile(r"\r\n?|\n")  # as in plain text; `splitlines` splits at eight more characters


Advance = Callable[[int], None]


@dataclass
class SourceDecoder(RowDecoder):
    """Decodes the rows of a source; faults are counted by their names in `OUTCOMES`."""

    problems: ReadReport = field(default_factory=ReadReport)
    advance: Advance | None = None  # called with the number of bytes read, for progress
    line: int = 0  # of the current row; 0 where `where` tells it

    @property
    def place(self) -> str:
        """File and line of the current row, or the title of the page."""
        return f"{self.name}:{self.line:,}" if self.line else f"{self.name}: {self.where}"

    def set_line(self, number: int) -> None:
        """Set the line, from 1, at which the current row begins."""
        self.line = number

    def note(self, name: str) -> None:
        """Count a problem of the current row."""
        self.problems.add(name, self.place)

    def decode(self, content: bytes) -> str:
        """Decode a line or record; invalid UTF-8 is replaced, NULs are removed."""
        if b"\0" in content:
            self.note("nul")
            content = content.replace(b"\0", b"")
        return super().decode(content)

    def count_undecodable(self) -> None:
        """Count the current row as one with invalid Unicode."""
        self.note("invalid-utf8")

    def parse(self, content: bytes, place: str = "", max_values: int = 0) -> JsonValue:
        """Parse JSON by Python's own rules: a corpus only needs one field of it."""
        try:
            values: JsonValue = json.loads(self.decode(content))
        except (ValueError, RecursionError) as error:
            raise DamagedFileError(f"{place or self.place} isn't JSON ({error})") from None
        return values

    def finish_row(self, problem: str = "", num_rows: int = 1) -> None:
        """Count a row, which may not be an object of JSON."""
        self.report.num_rows += num_rows
        if problem:
            self.note("broken-json")

    def open_file(self, path: Path | RemoteFile | None) -> BinaryIO | None:
        """Open a file, or standard input; None if it can't be read, which is counted."""
        try:
            packed = sys.stdin.buffer if path is None else path.open("rb", buffering=0)
        except BertkitError:  # of a remote file: the rest of the corpus can't be reached either
            raise
        except OSError as error:
            self.refuse_rest(*classify(error))
            return None

        def read() -> Iterator[bytes]:
            for content in read_plain(packed):
                if self.advance is not None:
                    self.advance(len(content))
                yield content

        return stream_pieces(read(), file=packed if path else None)

    def refuse_line(self) -> None:
        """Count a line that is too long, and is skipped as if it were blank."""
        self.problems.add("long-record", f"{self.name}:{self.num_lines + 1:,}")

    def refuse(self, fault: str, cause: str, message: str) -> None:
        """Count the fault that ends the reading of this source."""
        self.is_faulty = True
        self.problems.add(fault, f"{self.name} ({cause})")

    def refuse_foreign(self, start: bytes) -> None:
        """Count a file that isn't text; refuse one in another encoding."""
        if found := find_content(start):
            self.refuse_rest("not-text", f"it is {found[0]}; {found[1]}")
            return
        if self.encoding is None and not is_binary(start):
            refuse_encoding(self.name)
        self.refuse_rest("not-text", "much of it is NUL or no UTF-8; convert it")


@dataclass(frozen=True)
class Document:
    """A text whose sentences are in their original order."""

    lines: tuple[str, ...]  # sentences or paragraphs in order, none of them blank
    group: str  # where it is; those of a group share a split, e.g. `books/austen.txt.gz#12`
    split_key: str = ""  # what decides the split: the group without the folder, set by `prepare`


def read_text_lines(stream: BinaryIO, decoder: SourceDecoder) -> Iterator[str]:
    """Yield the decoded lines of plain text without white space around; long ones in pieces.

    Of consecutive lines of ASCII white space only the first is yielded, empty. Each line of other
    white space, such as U+3000, is yielded, also empty. Lines of only NULs are skipped, because
    they must not end a document, and so is the white space behind the last piece of a line.
    """

    def cut(number: int, content: bytes) -> tuple[bytes, bytes]:
        if not content.strip():
            return b"", b" "
        if number > decoder.line:
            decoder.problems.add("long-line", f"{decoder.name}:{number:,}")
        return lines.cut_at_white_space(content)

    was_blank = False
    divided = lines.divide_at_returns(stream, LINE_LIMIT_BYTES, cut, skips_blank=True)
    for number, content in divided:
        is_piece, decoder.line = number == decoder.line, number
        is_blank = not content.strip()
        if is_blank and (was_blank or is_piece):
            continue
        was_blank = is_blank
        if not is_blank:
            decoder.report.num_rows = number
        text = decoder.decode(content).strip()
        if text or b"\0" not in content:
            yield text


def join_lines(stream: BinaryIO, decoder: SourceDecoder, _: str) -> Iterator[Document]:
    """Yield the documents of plain text; each is its own group."""
    found: list[str] = []
    size, number, is_cut = 0, 0, False
    for text in read_text_lines(stream, decoder):
        if text:
            found.append(text)
            size += len(text)
            if size > DOCUMENT_LIMIT_CHARACTERS:
                if not is_cut:
                    decoder.note("long-document")
                yield Document(tuple(found), f"{decoder.name}#{number}")
                found, size, is_cut = [], 0, True
        elif found or is_cut:
            if found:
                yield Document(tuple(found), f"{decoder.name}#{number}")
            found, size, number, is_cut = [], 0, number + 1, False
    if found:
        yield Document(tuple(found), f"{decoder.name}#{number}")


def join_text(value: object, decoder: SourceDecoder) -> Iterator[Document]:
    """Yield the document in one field of a row, if it is usable; it is its own group."""
    if value is None:
        decoder.note("missing-field")
    elif not isinstance(value, str):
        decoder.note("wrong-type")
    else:
        if "\0" in value:
            decoder.note("nul")
            value = value.replace("\0", "")
        value = decoder.replace_surrogates(value)
        found = tuple(line.strip() for line in LINE_END.split(value) if line.strip())
        if found:
            yield Document(found, decoder.place)
        else:
            decoder.note("empty-document")


def join_article(page: Record, decoder: SourceDecoder) -> Iterator[Document]:
    """Yield the prose of a page that is an article; it is its own group."""
    markup = str(page.values.get("text", ""))
    if "redirect" in page.values:
        decoder.note("redirect")
    elif str(page.values.get("ns", "0")).strip() != "0":
        decoder.note("not-an-article")
    elif len(markup) > mediawiki.PAGE_LIMIT_CHARACTERS:
        decoder.note("long-record")
    else:
        try:
            found = mediawiki.running_lines(markup)
        except ValueError:
            decoder.note("broken-page")
            return
        sentences = tuple(line for line in found if ends_like_a_sentence(line))
        if len(sentences) < len(found):
            decoder.problems.add("unended-line", page.place, len(found) - len(sentences))
        if sentences:
            yield Document(sentences, page.place)
        else:
            decoder.note("empty-document")


def join_objects(stream: BinaryIO, decoder: SourceDecoder, column: str) -> Iterator[Document]:
    """Yield the document in a field of each object of JSONL."""
    for record in jsonl.read_objects(stream, decoder):
        yield from join_text(record.values.get(column), decoder)


def join_pages(stream: BinaryIO, decoder: SourceDecoder, _: str) -> Iterator[Document]:
    """Yield the document in each article of a dump."""
    for page in mediawiki.read_rows(stream, decoder).records:
        yield from join_article(page, decoder)


def join_cells(
    read_rows: Callable[[BufferedReader, RowDecoder], Rows],
    stream: BufferedReader,
    decoder: SourceDecoder,
    column: str,
) -> Iterator[Document]:
    """Yield the document in a column of each row of CSV or TSV."""
    try:
        rows = read_rows(stream, decoder)
    except InputError as error:  # of the first row, by which the others are read
        decoder.refuse_rest("damaged", str(error))
        return
    for record in rows.records:
        yield from join_text(record.values.get(column), decoder)


# By format; Parquet is read by columns, and so needs the file.
JOINERS: Mapping[str, Callable[[BufferedReader, SourceDecoder, str], Iterator[Document]]] = {
    "text": join_lines,
    "jsonl": join_objects,
    "csv": partial(join_cells, separated.read_csv_rows),
    "tsv": partial(join_cells, separated.read_tsv_rows),
    "mediawiki": join_pages,
}


def _read_column(source: TextSource, column: str, decoder: SourceDecoder) -> Iterator[Document]:
    """Yield a document for each row of Parquet."""
    with parquet.open_table(source.path, decoder) as stream:
        import pyarrow as pa

        # A faulty copy was already counted when it was made.
        if decoder.is_faulty or not stream.seek(0, os.SEEK_END):
            return
        file, rows_at_once = parquet.open_parquet(stream)
        num_rows = file.metadata.num_rows
        if fault := parquet.find_fault(file.schema_arrow, column):
            decoder.is_faulty = True
            decoder.problems.add(fault, f"{source.name} (all rows)", num_rows)
            return
        counts_rows = source.path is not None and not parquet.needs_copy(source.path)
        for batch in file.iter_batches(batch_size=rows_at_once, columns=[column]):
            if decoder.advance is not None and counts_rows:
                decoder.advance(round((source.size_bytes or 0) * len(batch) / num_rows))
            for value in batch.column(0).cast(pa.large_binary()).to_pylist():
                decoder.finish_row()
                decoder.set_line(decoder.report.num_rows)
                if len(value or b"") > MAX_ROW_BYTES:
                    decoder.note("long-record")
                    continue
                try:
                    text = None if value is None else value.decode()
                except UnicodeDecodeError:
                    decoder.count_undecodable()
                    text = value.decode(errors="replace")
                yield from join_text(text, decoder)


def _read_documents(
    source: TextSource, settings: ReaderSettings, decoder: SourceDecoder
) -> Iterator[Document]:
    if source.format == MEMORY:
        for number, text in enumerate(source.texts, start=1):
            if decoder.advance is not None:
                decoder.advance(len(text))
            decoder.finish_row()
            decoder.set_line(number)
            yield from join_text(text, decoder)
        return
    if source.format == "parquet":
        yield from _read_column(source, settings.text_column, decoder)
        return
    is_text = FORMATS[source.format].is_text
    with open_content(source.path, decoder, is_text=is_text) as stream:
        yield from JOINERS[source.format](stream, decoder, settings.text_column)


def read_source(
    source: TextSource,
    settings: ReaderSettings,
    report: ReadReport,
    advance: Advance | None = None,
) -> Iterator[Document]:
    """Yield the documents of one source, up to the point where it is damaged.

    An `InputError` says that more of its rows are broken than the settings allow.
    """
    report.max_broken, num_before = settings.max_broken, report.num_faults
    layout = LayoutSettings(encoding=source.reading.encoding)
    decoder = SourceDecoder(source.name, layout=layout, problems=report, advance=advance)
    if source.refusal is not None:
        decoder.refuse_rest(*source.refusal)
    else:
        yield from _read_documents(source, settings, decoder)
        if not (decoder.report.num_rows or decoder.is_faulty or source.format == MEMORY):
            report.add("empty-file", source.name)
        decoder.check_decodable(is_whole=True)
        report.decoding.add(decoder.decoding)
        report.check_decodable(settings.encoding, is_whole=False)
    num_faults, num_rows = report.num_faults - num_before, max(1, decoder.report.num_rows)
    if settings.max_broken < 1.0 and num_faults > settings.max_broken * num_rows:
        raise InputError(
            f"{source.name}: {num_faults:,} of {pluralize(num_rows, 'row')} broken, more than"
            f" --max-broken {settings.max_broken:g} allows; correct the input, or allow more"
        )


@dataclass
class Corpus:
    """All inputs of a command as one stream of documents."""

    sources: Sequence[TextSource]  # files and others, in reading order
    settings: ReaderSettings
    report: ReadReport = field(default_factory=ReadReport)
    advance: Advance | None = None  # called with the number of bytes read, for progress

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
