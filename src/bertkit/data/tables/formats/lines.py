"""Plain text: one text per line."""

from collections.abc import Iterator
from typing import BinaryIO

from bertkit.base.errors import InputError
from bertkit.data.tables.decoder import DEFAULT_FIELD, MAX_ROW_BYTES, RowDecoder
from bertkit.data.tables.record import Record, Rows

LINE_ENDS = b"\r\n"


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


def read_lines(stream: BinaryIO, decoder: RowDecoder) -> Iterator[bytes]:
    """Yield lines with their ends, and count them: LF or CR LF, or CR if the first 16 MiB lack LF.

    Otherwise a lone CR is part of its line, as in other tools: line n of one file must stay
    aligned with line n of another.
    """
    return decoder.number_lines(_divide(stream, decoder))


def _divide(stream: BinaryIO, decoder: RowDecoder) -> Iterator[bytes]:
    piece = stream.readline(MAX_ROW_BYTES + 1)
    if b"\r" in piece and not piece.endswith(b"\n"):
        yield from _divide_at_returns(piece, stream, decoder)
        return
    while piece:
        decoder.check_size(len(piece) - piece.endswith(b"\n"))
        yield piece
        piece = stream.readline(MAX_ROW_BYTES + 1)


def _divide_at_returns(piece: bytes, stream: BinaryIO, decoder: RowDecoder) -> Iterator[bytes]:
    """Yield lines that end with CR, LF or CR LF, for a file with CR line ends."""
    rest = b""
    while piece:
        lines = (rest + piece).splitlines(keepends=True)
        rest = b"" if piece.endswith(b"\n") else lines.pop()  # CR may be the first half of CR LF
        yield from lines
        decoder.check_size(len(rest))
        piece = stream.readline(MAX_ROW_BYTES + 1)
    if rest:
        yield rest
