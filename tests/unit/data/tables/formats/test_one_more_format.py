"""One more file format: subtitles, each of which is a row with its time and its text."""

from collections.abc import Iterator
from typing import BinaryIO

from tests.unit.data.tables.labeled import read

from bertkit.data.tables import formats, records
from bertkit.data.tables.decoder import RowDecoder
from bertkit.data.tables.formats.lines import read_lines
from bertkit.data.tables.record import Record, Rows


def read_rows(stream: BinaryIO, decoder: RowDecoder) -> Rows:
    return Rows(("time", "text"), _read_subtitles(stream, decoder))


def _read_subtitles(stream: BinaryIO, decoder: RowDecoder) -> Iterator[Record]:
    for line in read_lines(stream, decoder, skips_blank=True):
        if line.strip().isdigit():
            decoder.set_line(decoder.num_lines)
            time, text = (decoder.decode(next(stream)).strip() for _ in range(2))
            decoder.num_lines += 2
            decoder.finish_row("" if "-->" in time else f"{decoder.place} has no time: {time}")
            if "-->" in time:
                yield Record({"time": time, "text": text}, decoder.place)


def test_a_format_is_a_function_and_a_line(tmp_path, monkeypatch):
    monkeypatch.setitem(formats.FORMATS, "srt", formats.FileFormat(read_rows))
    monkeypatch.setitem(formats.EXTENSIONS, ".srt", "srt")
    monkeypatch.setattr(records, "RECORD_FORMATS", ["srt"])
    path = tmp_path / "film.srt"
    path.write_text("1\n00:01 --> 00:02\nHello.\n\n2\nsoon\nLost.\n\n3\n00:05 --> 00:06\nBye.\n")
    found, report = read(path)
    assert [one.values["text"] for one in found] == ["Hello.", "Bye."]
    assert report.first_broken == [f"{path}, line 5 has no time: soon"]
