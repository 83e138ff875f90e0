"""Random bytes as a labeled file; the first says of which format, and whether with a header."""

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.unit.data.tables.formats.workbooks import HEADER, write_parts

from bertkit.data.tables.records import Record, open_records
from bertkit.data.tables.settings import RecordSettings

NUM_INPUTS = 6_000
FORMATS = ("csv", "tsv", "jsonl", "parquet", "conll", "squad", "text", "xlsx")
NO_HEADER = 128  # first bytes from here on; a multiple of the number of formats
ANSWERS = {"text": ["b"], "answer_start": [2]}
QUESTION = {"id": "1", "question": "a?", "context": "a b", "answers": ANSWERS}
SQUAD = {"data": [{"paragraphs": [{"context": "a b", "qas": [{"id": 1, "question": "a?"}]}]}]}


def write_parquet(row: dict[str, object]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([row] * 3), buffer)
    return buffer.getvalue()


def write_workbook() -> bytes:
    rows = f'{HEADER}<row r="2"><c r="A2" t="s"><v>0</v></c><c t="b"><v>1</v></c></row>'
    return write_parts(io.BytesIO(), rows).getvalue()


EXAMPLES = {
    "csv": b'text,label\n"a, ""b""\n",x\nc,y\n',
    "tsv": b'text\tlabel\na "b"\tx\nc\ty\n',
    "jsonl": json.dumps(QUESTION).encode() + b'\n{"text": "\\ud83d\\ude00"}\n',
    "parquet": write_parquet(QUESTION),
    "conll": b"# id = 1\na\tNN\tO\nb\tNN\tB-X\n\n-DOCSTART-\n\nc\tNN\tO\n",
    "squad": json.dumps(SQUAD).encode(),
    "xlsx": write_workbook(),
    "text": b"a\nb\r\nc",
}
# what once came to errors of other libraries
FAILED = (b'\x80tex\xff\xfflabe\tNN\t"O\nb\nc,y\n',)


def seeds() -> list[bytes]:
    """A file of each format."""
    numbers = [(number, EXAMPLES[name]) for number, name in enumerate(FORMATS)]
    return [
        bytes([first + number]) + content for number, content in numbers for first in (0, NO_HEADER)
    ]


def dict_of(record: Record) -> dict[str, object]:
    return dict(record.values)


def read(data: bytes, folder: Path) -> None:
    """Read it to the end; every row is an example or is counted as broken."""
    first = data[0] if data else 0
    path = folder / "data"
    path.write_bytes(data[1:])
    settings = RecordSettings(
        format=FORMATS[first % len(FORMATS)], header=first < NO_HEADER, max_broken=1
    )
    table = open_records(path, settings)
    examples = table.read(dict_of)
    assert len(examples) + table.report.num_broken == table.report.num_rows
