"""Lines: what ends one, how long it may be, and a table of texts with one in each.

A row of a table is a line that ends with LF or CR LF, or with CR if the first 16 MiB lack LF; a
lone CR is otherwise a part of its line, as in other tools: line n of one file must stay aligned
with line n of another. A longer line is an error. In a corpus of plain text every CR ends a line,
and lines over 1 MiB are cut at white space, since nothing depends on their number.
"""

import codecs
import io
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import BinaryIO

from bertkit.base.errors import InputError
from bertkit.data.tables.decoder import DEFAULT_FIELD, MAX_ROW_BYTES, RowDecoder
from bertkit.data.tables.record import Record, Rows

LINE_ENDS = b"\r\n"
LONG_BLANK_RUN = 64  # lines after which scanning the whole buffer pays off
PIECE_BYTES = 1 << 20  # read at once where CR ends lines, as each line becomes an object
WHITE_SPACE = (b" ", b"\t")
CONTINUATION_MASK, CONTINUATION_BYTE = 0xC0, 0x80  # UTF-8 bytes inside a character

CutLine = Callable[[int, bytes], tuple[bytes, bytes]]  # its number and content → piece and rest


def read_rows(stream: BinaryIO, decoder: RowDecoder) -> Rows:
    """Read a record for each line, including empty ones, with the whole line as `text`."""
    if decoder.id_column is not None:
        raise InputError(
            f"{decoder.name} is text without columns, and has no ids; leave out --id-column"
        )
    return Rows((DEFAULT_FIELD,), _read_texts(stream, decoder))


def _read_texts(stream: BinaryIO, decoder: RowDecoder) -> Iterator[Record]:
    for line in read_lines(stream, decoder):
        decoder.set_line(decoder.num_lines)
        text = decoder.decode(line.rstrip(LINE_ENDS))
        decoder.finish_row()
        yield Record({DEFAULT_FIELD: text}, decoder.place)


def read_lines(
    stream: BinaryIO, decoder: RowDecoder, *, skips_blank: bool = False
) -> Iterator[bytes]:
    """Yield the lines of a table with their ends, and count them.

    A byte order mark at the beginning of a line, which is left where files were joined, is dropped.
    """
    for content in _divide(stream, decoder, skips_blank=skips_blank):
        decoder.count_line(len(content))
        line = content.removeprefix(codecs.BOM_UTF8)
        if not skips_blank or not line.isspace():
            yield line


def _divide(stream: BinaryIO, decoder: RowDecoder, *, skips_blank: bool) -> Iterator[bytes]:
    piece = stream.readline(MAX_ROW_BYTES + 1)
    if b"\r" in piece and not piece.endswith(b"\n"):
        yield from _divide_at_returns(stream, decoder, piece)
        return
    num_blank = 0
    while piece:
        if len(piece) - piece.endswith(b"\n") > MAX_ROW_BYTES:
            decoder.refuse_line()
            while piece and not piece.endswith(b"\n"):
                piece = stream.readline(PIECE_BYTES)
            piece = b"\n"
        yield piece
        num_blank = num_blank + 1 if skips_blank and piece.isspace() else 0
        if num_blank >= LONG_BLANK_RUN:
            blank = take_blank_lines(stream)
            decoder.count_line(len(blank), blank.count(b"\n"))
        piece = stream.readline(MAX_ROW_BYTES + 1)


def _divide_at_returns(stream: BinaryIO, decoder: RowDecoder, begun: bytes) -> Iterator[bytes]:
    """Yield the lines of a table; one that is too long, unless it is an error, as a blank one."""
    refused = 0

    def refuse(number: int, _: bytes) -> tuple[bytes, bytes]:
        nonlocal refused
        if number > refused:
            decoder.refuse_line()
        refused = number
        return b"", b""

    for number, line in divide_at_returns(stream, MAX_ROW_BYTES + 1, refuse, begun):
        if len(line) - (line[-1] in LINE_ENDS) > MAX_ROW_BYTES:
            refuse(number, line)
        yield b"\n" if number == refused else line


def divide_at_returns(
    stream: BinaryIO,
    limit_bytes: int,
    cut: CutLine,
    begun: bytes = b"",
    *,
    skips_blank: bool = False,
) -> Iterator[tuple[int, bytes]]:
    """Yield numbered lines that end with CR, LF or CR LF; a cut one in pieces of its number.

    Args:
        begun: what was read of the stream before.
        skips_blank: whether many blank lines may be passed over, but for the first few.
    """
    rest, number, num_blank, num_bytes = b"", 1, 0, min(limit_bytes, PIECE_BYTES)
    streams = io.BytesIO(begun), stream
    pieces = (iter(partial(one.readline, num_bytes), b"") for one in streams)
    for piece in chain.from_iterable(pieces):
        if rest and rest.endswith(b"\r") and not piece.startswith(b"\n"):
            yield number, rest
            number, rest = number + 1, b""
        lines = piece.splitlines(keepends=True)
        lines[0] = rest + lines[0]
        rest = b"" if piece.endswith(b"\n") else lines.pop()  # CR may be the half of CR LF
        yield from enumerate(lines, number)
        number += len(lines)
        num_blank = num_blank + 1 if skips_blank and piece.isspace() and not rest else 0
        if num_blank >= LONG_BLANK_RUN:
            number += len(take_blank_lines(stream).splitlines())
        if rest and len(rest) - rest.endswith(b"\r") >= limit_bytes:
            line, rest = cut(number, rest)
            if line:
                yield number, line
    if rest:
        yield number, rest


def take_blank_lines(stream: BinaryIO) -> bytes:
    """Read and return the whitespace-only lines at the start of a stream's buffer."""
    assert isinstance(stream, io.BufferedReader)
    buffered = stream.peek()
    num_blank_bytes = len(buffered) - len(buffered.lstrip())
    return stream.read(buffered.rfind(b"\n", 0, num_blank_bytes) + 1)


def cut_at_white_space(content: bytes) -> tuple[bytes, bytes]:
    """Split at the last white space near the end if possible, else between characters."""
    searched = len(content) - len(content) // 8
    cut = max(content.rfind(space, searched) for space in WHITE_SPACE)
    if cut < 0:
        cut = len(content) - 1
        while cut > len(content) - 4 and content[cut] & CONTINUATION_MASK == CONTINUATION_BYTE:
            cut -= 1
    return content[:cut], content[cut:]
