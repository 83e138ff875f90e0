"""Question-answering examples, read from records or from a caller."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Self, TypeGuard

from bertkit.base.errors import InputError, pluralize
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import RecordTable
from bertkit.tasks.answer import AnswerSettings
from bertkit.tasks.columns import find_column, read_label, take_text, take_value
from bertkit.tasks.task import TaskExample

NUM_SHOWN_CHARS = 40
TRUTH_VALUES = {"true": True, "false": False}
USUAL_STARTS = ("answer_start", "start")  # keys of an answer, or columns beside its text
WHOLE_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)


class GoldAnswer(NamedTuple):
    """A true answer."""

    text: str
    start: int | None  # None if the context doesn't contain it
    is_moved: bool  # whether the record gave another start
    is_ambiguous: bool = False  # whether the record gave none, and the words occur several times


@dataclass(frozen=True, slots=True)
class AnswerExample(TaskExample):
    """A question about a context, with optional answers."""

    samples: ClassVar = (("a", "a b"), ("a", "a b a b"))

    question: str
    context: str
    answers: tuple[GoldAnswer, ...] | None = None  # empty if there is no answer, None if unknown
    example_id: str = ""  # its id, or its place if it has none
    place: str = ""  # file and line, for messages
    has_other_start: bool = False  # whether a column named start means something else

    @property
    def span(self) -> tuple[int, int] | None:
        """Start and end in the context, in characters, of the first answer found there."""
        for answer in self.answers or ():
            if answer.start is not None:
                return answer.start, answer.start + len(answer.text)
        return None

    @property
    def arguments(self) -> Sequence[tuple[str, str]]:
        """The question, and --context."""
        return [("", self.question), ("--context", self.context)]

    @property
    def num_chars(self) -> int:
        """Number of characters of question and context."""
        return len(self.question) + len(self.context)

    @property
    def shown(self) -> str:
        """The question."""
        return self.question

    @property
    def group(self) -> str | None:
        """The context, because other questions about it would leak its words."""
        return self.context or None

    @classmethod
    def build_parser(
        cls, settings: AnswerSettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], "AnswerExample"]:
        """Build a function that reads question, context and answers from a record."""
        usual = settings.usual_columns
        question = find_column(table, "question", settings.question_column, usual["question"])
        context = find_column(table, "context", settings.context_column, usual["context"])
        answers = None
        if needs_answer:
            answers = find_column(table, "label", settings.label_column, usual["label"])
        seen: set[str] = set()

        def parse(record: Record) -> AnswerExample:
            text = take_text(record, context)
            given = record.values.get("id")
            example_id = record.place if given is None or given == "" else str(given)
            if example_id in seen:
                shown = repr(example_id[:NUM_SHOWN_CHARS])
                raise BrokenRowError(f"{record.place} has the id {shown}, which occurred before")
            if needs_answer:
                seen.add(example_id)
            return AnswerExample(
                question=take_text(record, question),
                context=text,
                answers=None if answers is None else _read_answers(record, answers, text),
                example_id=example_id,
                place=record.place,
                has_other_start=answers is not None and _has_other_start(record, answers),
            )

        return parse

    @classmethod
    def from_value(cls, value: Any, place: str, settings: AnswerSettings) -> Self:
        """Build an example from (question, context), or a mapping of both with an optional id."""
        del settings
        example_id = place
        if isinstance(value, Mapping):
            example_id = str(value.get("id", place))
            value = (value.get("question"), value.get("context"))
        if isinstance(value, tuple) and len(value) == 2 and all(isinstance(t, str) for t in value):
            return cls(*value, example_id=example_id, place=place)
        raise InputError(
            f"{place}: expected a tuple of question and context, or a mapping that has both, and"
            f" their texts; got {value!r:.80}"
        )


def locate_answer(context: str, text: str, start: int | None) -> GoldAnswer:
    """Find an answer in its context, nearest to its stated start; without one the first.

    Without a stated start, whole words come before parts of words.
    """
    bare = text.strip()
    if start is None:
        return _locate_first(context, bare)
    wanted = start + len(text) - len(text.lstrip())
    right = context.find(bare, max(0, wanted))
    left = context.rfind(bare, 0, max(0, wanted + len(bare) - 1))
    places = [place for place in (left, right) if place >= 0]
    nearest = min(places, key=lambda place: abs(place - wanted), default=None)
    return GoldAnswer(bare, nearest, is_moved=nearest not in {None, wanted})


def _locate_first(context: str, bare: str) -> GoldAnswer:
    words = re.escape(bare)
    for pattern in (rf"(?<!\w){words}(?!\w)", words):
        places = [found.start() for found in islice(re.finditer(pattern, context), 2)]
        if places:
            return GoldAnswer(bare, places[0], is_moved=False, is_ambiguous=len(places) > 1)
    return GoldAnswer(bare, None, is_moved=False)


def list_warnings(examples: Sequence[AnswerExample]) -> list[str]:
    """Report questions without an answer, and answers that aren't at their stated start."""
    num_impossible = sum(example.answers == () for example in examples)
    golds = [(gold, example.place) for example in examples for gold in example.answers or ()]
    moved = [place for gold, place in golds if gold.is_moved]
    absent = [place for gold, place in golds if gold.start is None]
    ambiguous = [place for gold, place in golds if gold.is_ambiguous]
    lines = []
    if num_impossible:
        lines.append(f"{num_impossible:,} of {len(examples):,} questions without an answer")
    if moved:
        lines.append(
            f"{pluralize(len(moved), 'answer')} not at answer_start; the nearest occurrence is"
            f" used, first at {moved[0]}"
        )
    others = [example.place for example in examples if example.has_other_start]
    if others:
        lines.append(
            f"{pluralize(len(others), 'row')} whose column start isn't the place of the answer; it"
            f" isn't used there, first at {others[0]}"
        )
    if ambiguous:
        lines.append(
            f"{pluralize(len(ambiguous), 'answer')} without answer_start whose words occur several"
            f" times; the first occurrence is used, first at {ambiguous[0]}"
        )
    if absent:
        lines.append(
            f"{pluralize(len(absent), 'answer')} not in the context beside others that are; used"
            f" only for scoring, first at {absent[0]}"
        )
    return lines


def _read_answers(record: Record, column: str, context: str) -> tuple[GoldAnswer, ...]:
    """Read the answers of a record; none if it is marked as impossible."""
    said = _list_answers(record, column)
    is_impossible = _read_impossible(record)
    if is_impossible:
        return ()
    given = [(text, start) for text, start in said if text.strip()]
    if not given and (said or is_impossible is False):
        raise BrokenRowError(f"{record.place} has no answer and isn't marked as unanswerable")
    answers = tuple(locate_answer(context, text, start) for text, start in given)
    if answers and all(answer.start is None for answer in answers):
        shown = given[0][0]
        raise BrokenRowError(
            f"{record.place} has an answer that isn't in its context: {shown[:NUM_SHOWN_CHARS]!r}"
        )
    return answers


def _read_impossible(record: Record) -> bool | None:
    """Read `is_impossible`; None if the record doesn't state it."""
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
    """Read the answers of a cell with their stated starts."""
    cell = take_value(record, column)
    if isinstance(cell, dict):  # of two lists, as in the Hub's `rajpurkar/squad`
        texts, starts = cell.get("text"), _find_start(cell)
        if isinstance(texts, list) and isinstance(starts, list) and len(texts) == len(starts):
            pairs = zip(texts, starts, strict=True)
            cell = [{"text": text, "answer_start": start} for text, start in pairs]
    if cell is None or isinstance(cell, str):
        return [(cell, _read_start(record))] if cell and cell.strip() else []
    if isinstance(cell, list) and all(map(_is_answer, cell)):
        return [(answer["text"], _find_start(answer)) for answer in cell]
    raise BrokenRowError(
        f"{record.place} has {cell!r:.40} in {column} where a text, a list of objects of text"
        " and answer_start, or an object of both lists should be"
    )


def _find_start(values: Mapping[str, Any]) -> Any:
    """Return the stated start of an answer; None if there is none."""
    return next((values[name] for name in USUAL_STARTS if values.get(name) is not None), None)


def _read_start(record: Record) -> int | None:
    """Read the start of an answer that is a text from the column beside it."""
    value = _find_start(record.values)
    if value is None or value == "":
        return None
    label = read_label(value)
    if label is not None and WHOLE_NUMBER.fullmatch(label):
        return int(label)
    strict, *_ = USUAL_STARTS
    if record.values.get(strict) is None:
        return None
    raise BrokenRowError(
        f"{record.place} has {value!r:.{NUM_SHOWN_CHARS}} in {strict} where the place of the answer"
        " in its context, a whole number from 0, should be"
    )


def _has_other_start(record: Record, column: str) -> bool:
    """Whether a column beside an answer that is a text is named start, and isn't its place."""
    value = _find_start(record.values)
    is_text = isinstance(record.values.get(column), str)
    return is_text and value is not None and value != "" and _read_start(record) is None


def _is_answer(value: object) -> TypeGuard[dict[str, Any]]:
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return False
    start = _find_start(value)
    return start is None or (isinstance(start, int) and not isinstance(start, bool))
