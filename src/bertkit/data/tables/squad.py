"""Questions with their answers: the JSON of SQuAD 1.1 and 2.0, and the columns of its data set.

Both become the same records. What is wrong with a question, or with all of a paragraph, costs these
alone, and is told with its path in the file, such as data[3].paragraphs[0].qas[2].

Source: Rajpurkar et al. 2016 and 2018; the Hub's `rajpurkar/squad` and `squad_v2`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from bertkit.base.errors import DamagedFileError, InputError
from bertkit.base.settings import describe_validation
from bertkit.data.tables.jsonl import parse_values
from bertkit.data.tables.record import BrokenRowError, Record, RecordDecoder, RowReport, Rows
from bertkit.data.tables.settings import RecordSettings

MAX_FILE_BYTES = 256 << 20  # SQuAD 2.0 has 42 MB
MAX_VALUES = 1 << 24
COLUMNS = ("id", "title", "question", "context", "answers", "is_impossible")
TOLD_BY = {"question", "context", "answers"}


class _Part(BaseModel):
    """A part of a file, for checking; what else it has is none of our business."""

    model_config = ConfigDict(strict=True, frozen=True)


class _Answer(_Part):
    text: str
    answer_start: int


class _Question(_Part):
    question: str
    context: str
    id: str | int | None = None
    answers: list[_Answer] | None = None
    is_impossible: bool | None = None

    @field_validator("answers", mode="before")
    @classmethod
    def _list_answers(cls, answers: Any) -> Any:
        """Turn the Hub's object of two lists into a list of objects."""
        if not isinstance(answers, dict):
            return answers
        texts, starts = answers.get("text"), answers.get("answer_start")
        if not isinstance(texts, list) or not isinstance(starts, list):
            raise ValueError("must have the lists text and answer_start")
        if len(texts) != len(starts):
            raise ValueError(f"has {len(texts)} of text and {len(starts)} of answer_start")
        pairs = zip(texts, starts, strict=True)
        return [{"text": text, "answer_start": start} for text, start in pairs]


class _Paragraph(_Part):
    context: str
    qas: list[Any]


class _Article(_Part):
    paragraphs: list[Any]
    title: Any = ""


Part = TypeVar("Part", bound=_Part)


def read_records(stream: BinaryIO, decoder: RecordDecoder, _: RecordSettings) -> Rows:
    """A record for each question of a JSON file."""
    return Rows(COLUMNS, _read_file(stream, decoder))


def _read_file(stream: BinaryIO, decoder: RecordDecoder) -> Iterator[Record]:
    """The questions of all articles.

    Raises:
        InputError: it isn't of SQuAD's form, or has more than 256 MiB.
    """
    content = stream.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise InputError(
            f"{decoder.name} has more than {MAX_FILE_BYTES >> 20} MiB; divide it, or make JSONL of"
            f" it, an object with {', '.join(COLUMNS)} a line"
        )
    if not content.strip():
        return
    decoder.report.num_bytes += len(content)
    advice = "if each line is an object, name it with --format jsonl"
    try:
        file = parse_values(content, decoder.name, decoder, max_values=MAX_VALUES)
    except DamagedFileError as error:
        raise InputError(f"{error}; {advice}") from None
    if not isinstance(file, dict) or not isinstance(file.get("data"), list):
        raise InputError(
            f"{decoder.name} isn't of SQuAD's form, an object whose data is a list of articles;"
            f" {advice}"
        )
    yield from _read_articles(file["data"], decoder)


def _read_articles(articles: list[Any], decoder: RecordDecoder) -> Iterator[Record]:
    ids: set[str] = set()
    for index, content in enumerate(articles):
        decoder.where = f"data[{index}]"
        try:
            article = _check(_Article, content, decoder.place)
        except BrokenRowError as error:
            decoder.finish_row(str(error))
            continue
        for number, paragraph in enumerate(article.paragraphs):
            decoder.where = f"data[{index}].paragraphs[{number}]"
            yield from _read_paragraph(paragraph, article.title, decoder, ids)


def _read_paragraph(
    content: Any, title: Any, decoder: RecordDecoder, ids: set[str]
) -> Iterator[Record]:
    """A record for each question about a paragraph; without its text they are all broken."""
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
            if not isinstance(question, dict) or question.get("id") is None:
                raise BrokenRowError(f"{decoder.place} must be an object with an id")
            values = {**question, "context": paragraph.context, "title": title}
            values = unify_question(values, decoder.place, ids)
        except BrokenRowError as error:
            decoder.finish_row(str(error))
            continue
        decoder.finish_row()
        yield Record({name: values[name] for name in COLUMNS}, decoder.place)


def unify(records: Iterator[Record], report: RowReport) -> Iterator[Record]:
    """The same records, those with question, context and answers in the form of the JSON files.

    Those of them that have faults, or an id that was there before, are counted as broken.
    """
    ids: set[str] = set()
    for record in records:
        if record.values.keys() >= TOLD_BY:
            try:
                values = unify_question(record.values, record.place, ids)
            except BrokenRowError as error:
                report.add_broken(str(error))
                continue
            record = Record(values, record.place)
        yield record


def unify_question(values: Mapping[str, Any], place: str, ids: set[str]) -> dict[str, object]:
    """The values of one question as tasks take them, and whatever else there is.

    Args:
        values: `answers` are a list of objects or, as in the Hub's columns, an object of lists.
        place: for messages.
        ids: of the questions before; this one's is added.

    Raises:
        BrokenRowError: a part is missing or of another kind, or the id was there before.
    """
    question = _check(_Question, values, place)
    unified = {
        **values,
        "answers": [dict(answer) for answer in question.answers or []],
        "is_impossible": question.is_impossible,
    }
    if question.is_impossible is None:
        unified["is_impossible"] = "answers" in values and not question.answers
    if question.id is not None:
        unified["id"] = identity = str(question.id)
        if identity in ids:
            raise BrokenRowError(f"{place} has the id {identity[:40]!r}, which was there before")
        ids.add(identity)
    return unified


def _check(kind: type[Part], content: Any, place: str) -> Part:
    """A part of a file, if it is what it must be.

    Raises:
        BrokenRowError: it isn't.
    """
    if not isinstance(content, dict):
        raise BrokenRowError(f"{place} must be an object")
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise BrokenRowError(f"{place} isn't as in SQuAD: {describe_validation(error)}") from None
