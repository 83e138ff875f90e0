"""CoNLL: one word per line with its tags in columns, a blank line between sentences.

Columns are separated by tabs or, if the first line has none, by any number of tabs and spaces. Tags
are left unchanged, whatever their scheme. Words are by default in the first column and tags in the
last; any column has its number, from 1, as a name. Document marks and comments are skipped: a
comment is a line at the beginning of a sentence that starts with # and isn't a word with its tags.
CoNLL-U is recognized by its ten columns with a number in the first; of it the syntactic words are
read, not the multiword ranges.

Source: https://universaldependencies.org/format.html.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

from bertkit.base.errors import InputError, pluralize
from bertkit.data.tables.decoder import MAX_ROW_BYTES, RowDecoder
from bertkit.data.tables.formats.lines import LINE_ENDS, read_lines
from bertkit.data.tables.record import BrokenRowError, Record, Rows

BLANKS = " \t\r\n"
DOCUMENT_MARKS = ("-DOCSTART-", "#begin document", "#end document")
COMMENT = "#"
MAX_COMMENTS = 1000  # blocks that seem to be only comments, at the start
SEPARATORS = re.compile("[ \t]+")
NUMBER = re.compile(r"\d+([-.]\d+)?")  # CoNLL-U: the first cell of each line
UNIVERSAL_COLUMNS, FORM, UPOS = 10, 2, 4
RANGE = re.compile(r"\d+[-.]\d+")  # CoNLL-U: a multiword token or an empty node

Line = tuple[int, str]


@dataclass(frozen=True)
class ConllLayout:
    """The columns of a file."""

    is_tabbed: bool  # whether single tabs separate the columns
    num_columns: int
    columns: dict[str, int]  # indices by name: tokens, tags if there are some, 1, 2 …
    is_universal: bool  # whether it is CoNLL-U

    def split(self, line: str) -> list[str]:
        """Split a line into cells."""
        return line.split("\t") if self.is_tabbed else SEPARATORS.split(line.strip(BLANKS))

    def is_comment(self, line: str) -> bool:
        """Whether a line at the beginning of a sentence is a comment."""
        if not line.startswith(COMMENT):
            return False
        cells = self.split(line)
        if len(cells) != self.num_columns:
            return True
        return cells[0].startswith("# ") if self.is_tabbed else "=" in cells[-1]


def read_rows(stream: BinaryIO, decoder: RowDecoder) -> Rows:
    """Read a record for each sentence."""
    sentences = _read_sentences(stream, decoder)
    first_sentences: list[list[Line]] = []
    typical = None
    while typical is None and (sentence := next(sentences, None)) is not None:
        first_sentences.append(sentence)
        typical = next((line for _, line in sentence if not line.startswith(COMMENT)), None)
        if len(first_sentences) == MAX_COMMENTS:
            break
    if not first_sentences:
        return Rows((), iter(()))
    layout = _find_layout(typical or first_sentences[0][0][1])
    return Rows(
        tuple(layout.columns), _read_words(chain(first_sentences, sentences), layout, decoder)
    )


def _read_sentences(stream: BinaryIO, decoder: RowDecoder) -> Iterator[list[Line]]:
    """Yield the numbered lines of each sentence, without document marks."""
    sentence: list[Line] = []
    num_bytes = 0
    for content in read_lines(stream, decoder):
        line = decoder.decode(content.rstrip(LINE_ENDS))
        if line.startswith(DOCUMENT_MARKS):
            continue
        if line.strip(BLANKS):
            num_bytes += len(content)
            if num_bytes > MAX_ROW_BYTES:
                raise InputError(
                    f"{decoder.name}, line {decoder.num_lines:,} is in a sentence of more than"
                    f" {MAX_ROW_BYTES >> 20} MiB; a blank line must stand between sentences"
                )
            sentence.append((decoder.num_lines, line))
        elif sentence:
            yield sentence
            sentence, num_bytes = [], 0
    if sentence:
        yield sentence


def _find_layout(line: str) -> ConllLayout:
    """Determine the columns of a file from one of its lines."""
    is_tabbed = "\t" in line
    cells = line.split("\t") if is_tabbed else SEPARATORS.split(line.strip(BLANKS))
    num_columns = len(cells)
    is_universal = bool(
        is_tabbed and num_columns == UNIVERSAL_COLUMNS and NUMBER.fullmatch(cells[0])
    )
    columns = {"tokens": FORM - 1 if is_universal else 0}
    if num_columns > 1:
        columns["tags"] = UPOS - 1 if is_universal else num_columns - 1
    columns |= {str(number): number - 1 for number in range(1, num_columns + 1)}
    return ConllLayout(is_tabbed, num_columns, columns, is_universal)


@dataclass(frozen=True)
class SentenceCells(Mapping[str, object]):
    """The cells of a sentence by column; a column that is asked for has a text in each."""

    file: str
    rows: list[tuple[int, list[str]]]  # cells of each line, after its number
    layout: ConllLayout

    def __getitem__(self, column: str) -> list[str]:
        index = self.layout.columns[column]
        for number, cells in self.rows:
            if not cells[index].strip(BLANKS):  # a no-break space is a word
                raise BrokenRowError(
                    f"{self.file}, line {number:,} has an empty cell where {column} should be"
                    f"{_leave_out(self.rows)}"
                )
        return [cells[index] for _, cells in self.rows]

    def __contains__(self, column: object) -> bool:
        return column in self.layout.columns

    def __iter__(self) -> Iterator[str]:
        return (name for name in ("tokens", "tags") if name in self.layout.columns)

    def __len__(self) -> int:
        return len(list(iter(self)))


def _read_words(
    sentences: Iterator[list[Line]], layout: ConllLayout, decoder: RowDecoder
) -> Iterator[Record]:
    """Yield a record for each sentence whose lines all have a cell for each column."""
    for sentence in sentences:
        while sentence and layout.is_comment(sentence[0][1]):
            sentence = sentence[1:]
        if not sentence:
            continue
        rows = [(number, layout.split(line)) for number, line in sentence]
        problem = _find_problem(rows, layout, decoder)
        decoder.finish_row(problem)
        if not problem:
            decoder.set_line(sentence[0][0])
            words = SentenceCells(decoder.name, _drop_ranges(rows, layout), layout)
            yield Record(words, decoder.place)


def _find_problem(
    rows: list[tuple[int, list[str]]], layout: ConllLayout, decoder: RowDecoder
) -> str:
    """Return what is wrong with a sentence, and set the decoder to that line; "" if nothing."""
    for number, cells in rows:
        decoder.set_line(number)
        if len(cells) != layout.num_columns:
            by = " between tabs, as the first line has them" if layout.is_tabbed else ""
            return (
                f"{decoder.place} has {pluralize(len(cells), 'cell')} where there are"
                f" {layout.num_columns} columns{by}{_leave_out(rows)}"
            )
    return ""


def _leave_out(rows: list[tuple[int, list[str]]]) -> str:
    return f"; the sentence from line {rows[0][0]:,} on is left out"


def _drop_ranges(
    rows: list[tuple[int, list[str]]], layout: ConllLayout
) -> list[tuple[int, list[str]]]:
    """Leave out ranges and empty nodes, in CoNLL-U or where the other lines count from 1."""
    kept = [row for row in rows if RANGE.fullmatch(row[1][0]) is None]
    if len(kept) == len(rows) or layout.is_universal:
        return kept
    counted = list(map(str, range(1, len(kept) + 1)))
    return kept if [cells[0] for _, cells in kept] == counted else rows
