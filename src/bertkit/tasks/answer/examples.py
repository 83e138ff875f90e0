"""Questions with their texts and answers, of any record that has them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

from bertkit.base.errors import InputError
from bertkit.base.wording import pluralize
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import RecordTable
from bertkit.tasks.answer.settings import AnswerSettings
from bertkit.tasks.columns import find_column, read_label, take_text

NUM_SHOWN_CHARS = 40
TRUTH_VALUES = {"true": True, "false": False}


class GoldAnswer(NamedTuple):
    """An answer that people gave.

    Attributes:
        text: its words, without blanks around them.
        start: where it begins in the context; None where it isn't there.
        is_moved: whether the record said that it begins elsewhere.
    """

    text: str
    start: int | None
    is_moved: bool


@dataclass(frozen=True, slots=True)
class AnswerExample:
    """A question about a text.

    Attributes:
        question: what is asked.
        context: the text that is read.
        answers: those that people gave, one of them at least in the context; empty where it has
            none, and None where that isn't known.
        identity: its id, or its place where it has none.
        place: file and line, for messages.
    """

    question: str
    context: str
    answers: tuple[GoldAnswer, ...] | None = None
    identity: str = ""
    place: str = ""

    @property
    def span(self) -> tuple[int, int] | None:
        """Where the first answer that is in the context stands there, in characters."""
        for answer in self.answers or ():
            if answer.start is not None:
                return answer.start, answer.start + len(answer.text)
        return None


def build_parser(
    settings: AnswerSettings, table: RecordTable, *, needs_answer: bool
) -> Callable[[Record], AnswerExample]:
    """Look for question, context and answers in their columns."""
    question = find_column(table, "question", settings.question_column, ("question",))
    context = find_column(table, "context", settings.context_column, ("context",))
    answers = None
    if needs_answer:
        answers = find_column(table, "answers", settings.answers_column, ("answers", "answer"))
    seen: set[str] = set()

    def parse(record: Record) -> AnswerExample:
        text = take_text(record, context)
        given = record.values.get("id")
        identity = record.place if given is None or given == "" else str(given)
        if needs_answer:
            _check_new(identity, seen, record.place)
        return AnswerExample(
            question=take_text(record, question),
            context=text,
            answers=None if answers is None else _read_answers(record, answers, text),
            identity=identity,
            place=record.place,
        )

    return parse


def make_example(value: Any, place: str) -> AnswerExample:
    """An example of (question, context), or of a mapping that has both, and perhaps an id."""
    identity = place
    if isinstance(value, Mapping):
        identity = str(value.get("id", place))
        value = (value.get("question"), value.get("context"))
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(t, str) for t in value):
        return AnswerExample(*value, identity=identity, place=place)
    raise InputError(
        f"{place}: expected a tuple of question and context, or a mapping that has both, and their"
        f" texts; got {value!r:.80}"
    )


def locate_answer(context: str, text: str, start: int | None) -> GoldAnswer:
    """Find an answer in its context: where it is said to be, or else nearest to that.

    Args:
        context: the text.
        text: the answer; blanks around it don't count.
        start: where it is said to begin; None where nothing is said, which is the first place.
    """
    bare = text.strip()
    num_blanks = len(text) - len(text.lstrip())
    wanted = 0 if start is None else max(0, start + num_blanks)
    right = context.find(bare, wanted)
    left = context.rfind(bare, 0, max(0, wanted + len(bare) - 1))
    places = [place for place in (left, right) if place >= 0]
    nearest = min(places, key=lambda place: abs(place - wanted), default=None)
    is_elsewhere = start is not None and nearest != start + num_blanks
    return GoldAnswer(bare, nearest, is_moved=nearest is not None and is_elsewhere)


def list_warnings(examples: Sequence[AnswerExample]) -> list[str]:
    """How many questions have no answer, and how many answers stand elsewhere than it is said."""
    num_impossible = sum(example.answers == () for example in examples)
    golds = [(gold, example.place) for example in examples for gold in example.answers or ()]
    moved = [place for gold, place in golds if gold.is_moved]
    absent = [place for gold, place in golds if gold.start is None]
    lines = []
    if num_impossible:
        lines.append(f"{num_impossible:,} of {len(examples):,} questions without an answer")
    if moved:
        lines.append(
            f"{pluralize(len(moved), 'answer')} not where answer_start says; the nearest place with"
            f" the same words is taken, first at {moved[0]}"
        )
    if absent:
        lines.append(
            f"{pluralize(len(absent), 'answer')} beside others not in the context, only scored"
            f" with, first at {absent[0]}"
        )
    return lines


def _check_new(identity: str, seen: set[str], place: str) -> None:
    """Add an id to those that there are."""
    if identity in seen:
        raise BrokenRowError(
            f"{place} has the id {identity[:NUM_SHOWN_CHARS]!r}, which was there before"
        )
    seen.add(identity)


def _read_answers(record: Record, column: str, context: str) -> tuple[GoldAnswer, ...]:
    """The answers of a record; none where it says that there are none."""
    said = _list_answers(record, column)
    is_impossible = _read_impossible(record)
    if is_impossible:
        return ()
    given = [(text, start) for text, start in said if text.strip()]
    if not given and (said or is_impossible is False):
        raise BrokenRowError(f"{record.place} has no answer, and isn't said to have none")
    answers = tuple(locate_answer(context, text, start) for text, start in given)
    if answers and all(answer.start is None for answer in answers):
        shown = given[0][0]
        raise BrokenRowError(
            f"{record.place} has an answer that isn't in its context: {shown[:NUM_SHOWN_CHARS]!r}"
        )
    return answers


def _read_impossible(record: Record) -> bool | None:
    """Whether a record says that there is no answer; None where it says nothing."""
    value = record.values.get("is_impossible")
    if value is None or value == "":
        return None
    says = (read_label(value) or "").lower()
    if says not in TRUTH_VALUES:
        raise BrokenRowError(
            f"{record.place} has {value!r:.{NUM_SHOWN_CHARS}} in is_impossible where true or false"
            " should be"
        )
    return TRUTH_VALUES[says]


def _list_answers(record: Record, column: str) -> list[tuple[str, int | None]]:
    """The texts of a cell and where they are said to begin."""
    if column not in record.values:
        raise BrokenRowError(f"{record.place} has no {column}")
    cell = _pair_lists(record.values[column])
    if cell is None or isinstance(cell, str):
        return [(cell, None)] if cell and cell.strip() else []
    if isinstance(cell, list) and all(map(_is_answer, cell)):
        return [(answer["text"], answer.get("answer_start")) for answer in cell]
    raise BrokenRowError(
        f"{record.place} has {cell!r:.40} in {column} where a text, a list of objects of text"
        " and answer_start, or an object of both lists should be"
    )


def _pair_lists(cell: object) -> object:
    """The object of two lists that the Hub's columns have as a list of objects; others as they are.

    Source: the Hub's `rajpurkar/squad` and `squad_v2`.
    """
    match cell:
        case {"text": list(texts), "answer_start": list(starts)} if len(texts) == len(starts):
            pairs = zip(texts, starts, strict=True)
            return [{"text": text, "answer_start": start} for text, start in pairs]
    return cell


def _is_answer(value: object) -> TypeGuard[dict[str, Any]]:
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return False
    start = value.get("answer_start")
    return start is None or (isinstance(start, int) and not isinstance(start, bool))
