"""Questions with answers: the JSON of SQuAD 1.1 and 2.0.

An error in a question, or in a paragraph, affects only that part, and is reported with its path in
the file, such as data[3].paragraphs[0].qas[2].

Source: Rajpurkar et al. 2016 and 2018.
"""

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue

from bertkit.base.errors import DamagedFileError, InputError
from bertkit.base.json_files import parse_json
from bertkit.base.settings import validate
from bertkit.data.problems import UNDECODABLE
from bertkit.data.tables.decoder import DEFAULT_FIELD, RowDecoder, show_names
from bertkit.data.tables.formats import jsonl
from bertkit.data.tables.formats.jsonl import KINDS
from bertkit.data.tables.record import BrokenRowError, Record, Rows, list_columns

MAX_FILE_BYTES = 256 << 20  # SQuAD 2.0 has 42 MB
MAX_VALUES = 1 << 24
COLUMNS = ("id", "title", "question", "context", "answers", "is_impossible")


class _Part(BaseModel):
    """Base of the schemas for a file's parts; other keys are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)


class _Answer(_Part):
    text: str
    answer_start: int | None = Field(
        default=None, validation_alias=AliasChoices("answer_start", "start")
    )


class _Question(_Part):
    question: str
    id: str | int
    answers: list[_Answer] | None = None
    is_impossible: bool | None = None


class _Paragraph(_Part):
    context: str
    qas: list[Any]


class _Article(_Part):
    paragraphs: list[Any]
    title: Any = ""


Part = TypeVar("Part", bound=_Part)


def read_rows(stream: BinaryIO, decoder: RowDecoder) -> Rows:
    """Read a record for each question of a JSON file."""
    return Rows(COLUMNS, _read_file(stream, decoder))


def _read_file(stream: BinaryIO, decoder: RowDecoder) -> Iterator[Record]:
    """Yield the questions of all articles."""
    file = parse_file(read_whole(stream, decoder), decoder)
    if file is None:
        return
    if (articles := find_articles(file)) is None:
        raise InputError(
            f"{decoder.name} isn't in SQuAD's format, an object whose data is a list of articles"
            " with paragraphs; --format json reads a list of objects"
        )
    yield from count_undecodable(read_articles(articles, decoder), decoder)


def read_whole(stream: BinaryIO, decoder: RowDecoder) -> bytes:
    """Read a file that is one JSON value; a larger one is an error."""
    content = stream.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise InputError(
            f"{decoder.name} has more than {MAX_FILE_BYTES >> 20} MiB, the limit for a file of"
            " JSON; divide it, or write an object a line (JSONL)"
        )
    decoder.report.num_bytes += len(content)
    return content


def parse_file(content: bytes, decoder: RowDecoder) -> JsonValue:
    """Parse a file that is one JSON value; None if it is blank."""
    if not content.strip():
        return None
    try:
        return decoder.parse(content, decoder.name, MAX_VALUES)
    except DamagedFileError as error:
        advice = "if each line is an object, name it with --format jsonl"
        raise InputError(f"{error}; {advice}") from None


def find_articles(file: JsonValue) -> list[JsonValue] | None:
    """Return the data of an object if it is a list of articles with paragraphs; else None."""
    articles = file.get("data") if isinstance(file, dict) else None
    if not isinstance(articles, list):
        return None
    has_one = any(isinstance(one, dict) and "paragraphs" in one for one in articles)
    return articles if has_one or not articles else None


def count_undecodable(records: Iterator[Record], decoder: RowDecoder) -> Iterator[Record]:
    """Count the records with U+FFFD if the file, which was decoded as a whole, got some."""
    is_replaced = decoder.report.counts.pop(UNDECODABLE, 0) > 0
    for record in records:
        if is_replaced and "\N{REPLACEMENT CHARACTER}" in repr(record.values):
            decoder.report.add(UNDECODABLE, record.place)
        yield record


def read_articles(articles: list[JsonValue], decoder: RowDecoder) -> Iterator[Record]:
    """Yield the questions of articles."""
    for index, content in enumerate(articles):
        decoder.where = f"data[{index}]"
        try:
            article = _check(_Article, content, decoder.place)
        except BrokenRowError as error:
            decoder.finish_row(str(error))
            continue
        for number, paragraph in enumerate(article.paragraphs):
            decoder.where = f"data[{index}].paragraphs[{number}]"
            yield from _read_paragraph(paragraph, article.title, decoder)


def _read_paragraph(content: JsonValue, title: JsonValue, decoder: RowDecoder) -> Iterator[Record]:
    """Yield a record for each question of a paragraph; if it is broken, all of them are."""
    where = decoder.where
    try:
        paragraph = _check(_Paragraph, content, decoder.place)
    except BrokenRowError as error:
        questions = content.get("qas") if isinstance(content, dict) else None
        num_questions = len(questions) if isinstance(questions, list) else 1
        decoder.finish_row(str(error), num_questions)
        return
    for number, question in enumerate(paragraph.qas):
        decoder.where = f"{where}.qas[{number}]"
        try:
            checked = _check(_Question, question, decoder.place)
        except BrokenRowError as error:
            decoder.finish_row(str(error))
            continue
        decoder.finish_row()
        is_impossible = checked.is_impossible
        if is_impossible is None:  # empty `answers` imply it
            is_impossible = "answers" in checked.model_fields_set and not checked.answers
        answers = [dict(answer) for answer in checked.answers or []]
        cells = str(checked.id), title, checked.question, paragraph.context, answers, is_impossible
        yield Record(dict(zip(COLUMNS, cells, strict=True)), decoder.place)


def _check(kind: type[Part], content: JsonValue, place: str) -> Part:
    """Validate a part of a file against its schema."""
    if not isinstance(content, dict):
        raise BrokenRowError(f"{place} must be an object")
    return validate(kind, content, f"{place} isn't in SQuAD's format", BrokenRowError)


def read_json_rows(stream: BinaryIO, decoder: RowDecoder) -> Rows:
    """Read a record for each object of a list, each question of SQuAD, or each line of JSONL."""
    content = read_whole(stream, decoder)
    if has_objects_in_lines(content):
        decoder.report.num_bytes -= len(content)  # lines are counted as they are read
        return jsonl.read_rows(io.BufferedReader(io.BytesIO(content)), decoder)
    file = parse_file(content, decoder)
    if (articles := find_articles(file)) is not None and not decoder.texts_only:
        return Rows(COLUMNS, count_undecodable(read_articles(articles, decoder), decoder))
    rows = find_rows(file, decoder)
    if decoder.texts_only:
        return Rows((DEFAULT_FIELD,), jsonl.name_texts(rows, decoder))

    def read_objects() -> Iterator[Record]:
        for number, values in enumerate(rows, start=1):
            decoder.where = f"row {number:,}"
            yield from jsonl.take_object(values, decoder)

    records = count_undecodable(read_objects(), decoder)
    columns = list_columns(values for values in rows if isinstance(values, dict))
    return Rows(columns, records, len(rows))


def has_objects_in_lines(content: bytes) -> bool:
    """Whether the first line with content is an object, and another line follows."""
    first, _, rest = content.lstrip().partition(b"\n")
    if not first.startswith(b"{") or not rest.strip():
        return False
    try:
        return isinstance(parse_json(first, "the first line"), dict)
    except DamagedFileError:
        return False


def find_rows(file: JsonValue, decoder: RowDecoder) -> list[JsonValue]:
    """Return the list of rows: the file itself, or the only list of objects in an object."""
    if file is None:
        return []
    if isinstance(file, list):
        return file
    if isinstance(file, dict):
        lists = {
            name: value
            for name, value in file.items()
            if isinstance(value, list) and value and all(isinstance(one, dict) for one in value)
        }
        if len(lists) == 1:
            (rows,) = lists.values()
            return rows
        raise InputError(
            f"{decoder.name} is an object with {show_names(file) or 'nothing in it'}, and rows are"
            " expected: a list of objects, SQuAD's articles, or an object a line"
        )
    raise InputError(f"{decoder.name} has {KINDS.get(type(file), 'a single value')}, and no rows")
