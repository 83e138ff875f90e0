"""CoNLL: one word per line with its tags in columns, a blank line between sentences.

Columns are separated by tabs or, if the first line has none, by any number of tabs and spaces. Tags
are left unchanged, whatever their scheme. Document marks and comments are skipped: a comment is a
line at the beginning of a sentence that starts with # and isn't a word with its tags. CoNLL-U is
recognized by its ten columns with a number in the first; of it the syntactic words are read, not
the multiword ranges.

Source: https://universaldependencies.org/format.html.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

from bertkit.base.errors import InputError, pluralize
from bertkit.data.tables.decoder import MAX_ROW_BYTES, RowDecoder
from bertkit.data.tables.formats.lines import LINE_ENDS, read_lines
from bertkit.data.tables.record import Record, Rows

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
    token: int  # index of the column of words
    tag: int | None  # index of the column of tags; None if there is none

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
    """Read a record for each sentence with `tokens` and, if the file has them, `tags`."""
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
    layout = _find_layout(typical or first_sentences[0][0][1], decoder)
    columns = ("tokens",) if layout.tag is None else ("tokens", "tags")
    return Rows(columns, _read_words(chain(first_sentences, sentences), layout, decoder))


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


def _find_layout(line: str, decoder: RowDecoder) -> ConllLayout:
    """Determine the columns of a file from one of its lines."""
    is_tabbed = "\t" in line
    cells = line.split("\t") if is_tabbed else SEPARATORS.split(line.strip(BLANKS))
    num_columns = len(cells)
    if is_tabbed and num_columns == UNIVERSAL_COLUMNS and NUMBER.fullmatch(cells[0]):
        usual_token, usual_tag = FORM, UPOS
    else:
        usual_token, usual_tag = 1, num_columns
    settings = decoder.layout
    token, tag = settings.token_column or usual_token, settings.tag_column or usual_tag
    if max(token, tag) > num_columns:
        flag = "--token-column" if token > num_columns else "--tag-column"
        raise InputError(
            f"{decoder.name} has {pluralize(num_columns, 'column')} and no column"
            f" {max(token, tag)} ({flag}); they are counted from 1"
        )
    has_tags = num_columns > 1 or settings.tag_column is not None
    return ConllLayout(is_tabbed, num_columns, token - 1, tag - 1 if has_tags else None)


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
            yield Record(_name_cells([cells for _, cells in rows], layout), decoder.place)


def _find_problem(
    rows: list[tuple[int, list[str]]], layout: ConllLayout, decoder: RowDecoder
) -> str:
    """Return what is wrong with a sentence, and set the decoder to that line; "" if nothing."""
    of_sentence = f"; the sentence from line {rows[0][0]:,} on is left out"
    for number, cells in rows:
        decoder.set_line(number)
        if len(cells) != layout.num_columns:
            by = " between tabs, as the first line has them" if layout.is_tabbed else ""
            return (
                f"{decoder.place} has {pluralize(len(cells), 'cell')} where there are"
                f" {layout.num_columns} columns{by}{of_sentence}"
            )
        needed = [cells[layout.token], "x" if layout.tag is None else cells[layout.tag]]
        if not all(cell.strip(BLANKS) for cell in needed):  # a no-break space is a word
            return f"{decoder.place} has an empty cell where word and tag should be{of_sentence}"
    return ""


def _name_cells(rows: list[list[str]], layout: ConllLayout) -> dict[str, object]:
    if layout.token > 0:
        rows = [cells for cells in rows if RANGE.fullmatch(cells[0]) is None]
    values: dict[str, object] = {"tokens": [cells[layout.token] for cells in rows]}
    if layout.tag is not None:
        values["tags"] = [cells[layout.tag] for cells in rows]
    return values
