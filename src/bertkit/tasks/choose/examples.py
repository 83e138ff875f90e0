"""Multiple-choice examples: a context and its choices, read from records or from a caller."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from bertkit.base.errors import InputError
from bertkit.data.problems import RowReport
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.data.tables.records import RecordTable
from bertkit.tasks.choose import MAX_CHOICES, MIN_CHOICES, ChooseSettings
from bertkit.tasks.columns import SHOWN_CHARS, find_column, take_answer, take_text, take_value
from bertkit.tasks.task import TaskExample

USUAL_CONTEXT = ("context", "sent1", "premise", "text")
USUAL_QUESTION = ("question", "sent2")
USUAL_CHOICES = ("choices", "endings", "options")
USUAL_BEGINNINGS = ("ending", "choice", "option")


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """What a record gives as the correct choice."""

    value: str
    is_number: bool  # a number of JSON or Parquet; a text of digits isn't one
    by_position: int | None  # index of the choice, if the value is its position
    by_text: int | None  # index of the choice, if the value is its text
    place: str  # file, line and column, to begin a message


@dataclass(frozen=True, slots=True)
class ChooseExample(TaskExample):
    """A context and its choices."""

    samples: ClassVar = (("a", ("a", "b")), ("a b", ("a b", "b")))

    context: str
    choices: tuple[str, ...]  # 2 to 64
    question: str = ""  # text before each choice in the second segment; may be empty
    label: int | None = None  # index of the correct choice, from 0; None if unknown
    place: str = ""  # file and line, for messages
    given: GivenAnswer | None = None  # until `settle` has decided what it means

    def join(self, choice: str) -> str:
        """Join the question and a choice, which follow the context as the second segment."""
        return f"{self.question} {choice}" if self.question else choice

    @property
    def arguments(self) -> Sequence[tuple[str, str]]:
        """The context, --question if it has one, and each --choice."""
        question = [("--question", self.question)] if self.question else []
        return [("", self.context), *question, *(("--choice", each) for each in self.choices)]

    @property
    def num_chars(self) -> int:
        """Number of characters of all sequences."""
        return sum(len(self.context) + len(self.join(choice)) for choice in self.choices)

    @property
    def shown(self) -> str:
        """Context and question."""
        return f"{self.context} {self.question}".strip()

    @property
    def group(self) -> str | None:
        """The context, which several examples may share."""
        return self.context or None

    @classmethod
    def build_parser(
        cls, settings: ChooseSettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], "ChooseExample"]:
        """Build a function that reads context, question, choices and label from a record."""
        context = find_column(table, "context", settings.context_column, USUAL_CONTEXT)
        question = settings.question_column
        if question is not None or set(USUAL_QUESTION) & set(table.columns or ()):
            question = find_column(table, "question", question, USUAL_QUESTION)
        take_choices = _find_choices(settings, table)
        label = None
        if needs_answer:
            label = find_column(table, "label", settings.label_column, ("label", "answer"))

        def parse(record: Record) -> ChooseExample:
            choices = take_choices(record)
            return ChooseExample(
                context=take_text(record, context),
                choices=choices,
                question="" if question is None else take_text(record, question),
                place=record.place,
                given=None if label is None else read_answer(record, label, choices),
            )

        return parse

    @classmethod
    def settle(
        cls,
        examples: list[Self],
        report: RowReport,
        settings: ChooseSettings,
        known: Sequence[str] = (),
    ) -> list[Self]:
        """Read all answers as positions, or all as texts of choices."""
        del settings, known
        kept = []
        given = [example.given for example in examples if example.given is not None]
        for example, label in zip(examples, choose_meaning(given, report), strict=True):
            if label is not None:
                kept.append(replace(example, label=label, given=None))
        return kept

    @classmethod
    def from_value(cls, value: Any, place: str, settings: ChooseSettings) -> Self:
        """Build an example from (context, choices), or a mapping that may also have a question."""
        del settings
        question: Any = None
        if isinstance(value, Mapping):
            question = value.get("question")
            value = (value.get("context"), value.get("choices"))
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
            context, choices = value
            is_list = isinstance(choices, list | tuple) and all(isinstance(t, str) for t in choices)
            if is_list and isinstance(question, str | None):
                if not MIN_CHOICES <= len(choices) <= MAX_CHOICES:
                    raise InputError(f"{place}: {_describe_number(len(choices))}")
                return cls(context, tuple(choices), question or "", place=place)
        raise InputError(
            f"{place}: expected a tuple of context and a list of choices, or a mapping that has"
            f" both and perhaps a question; got {value!r:.80}"
        )


def _find_choices(
    settings: ChooseSettings, table: RecordTable
) -> Callable[[Record], tuple[str, ...]]:
    """Build a function that reads choices from a list, or from numbered columns."""
    columns = table.columns or ()
    wanted = settings.choices_column
    beginnings = USUAL_BEGINNINGS if wanted is None else (wanted,)
    has_list = wanted in columns or (wanted is None and bool(set(USUAL_CHOICES) & set(columns)))
    if not has_list:
        for beginning in beginnings:
            if _list_numbered(beginning, columns):
                return lambda record: _take_numbered(record, beginning)
    column = find_column(table, "choices", wanted, USUAL_CHOICES)
    return lambda record: _check(take_value(record, column), record, column)


def _list_numbered(beginning: str, columns: Sequence[str]) -> list[str]:
    """List columns such as ending0, ending1, in the order of their numbers."""
    pattern = re.compile(rf"{re.escape(beginning)}(\d{{1,3}})", re.ASCII)
    found = [(int(match[1]), name) for name in columns if (match := pattern.fullmatch(name))]
    return [name for _, name in sorted(found)]


def _take_numbered(record: Record, beginning: str) -> tuple[str, ...]:
    """Read choices from numbered columns, without empty ones at the end."""
    values = [record.values[name] for name in _list_numbered(beginning, list(record.values))]
    while values and values[-1] in (None, ""):
        values.pop()
    return _check(values, record, beginning)


def _check(values: object, record: Record, column: str) -> tuple[str, ...]:
    """Check the type and the number of choices."""
    if not isinstance(values, list) or not all(isinstance(choice, str) for choice in values):
        raise BrokenRowError(
            f"{record.place} has {values!r:.{SHOWN_CHARS}} in {column} where a list of texts should"
            " be"
        )
    if not MIN_CHOICES <= len(values) <= MAX_CHOICES:
        raise BrokenRowError(f"{record.place}: {_describe_number(len(values))}")
    return tuple(values)


def _describe_number(number: int) -> str:
    return f"there must be from {MIN_CHOICES} to {MAX_CHOICES} choices, not {number}"


def read_answer(record: Record, column: str, choices: tuple[str, ...]) -> GivenAnswer:
    """Read what a record gives as the correct choice: a position, the text of a choice, or both."""
    value = take_answer(record, column)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number or isinstance(value, str):
        bare = str(value).strip()
        is_position = re.fullmatch(r"\d{1,3}", bare, re.ASCII) and int(bare) < len(choices)
        places = [place for place, choice in enumerate(choices) if choice.strip() == bare]
        by_position = int(bare) if is_position else None
        by_text = places[0] if len(places) == 1 else None
        if by_position is not None or by_text is not None:
            place = f"{record.place}, {column}"
            return GivenAnswer(bare, is_number, by_position, by_text, place)
    raise BrokenRowError(
        f"{record.place} has {value!r:.{SHOWN_CHARS}} in {column} where a number from 0 to"
        f" {len(choices) - 1}, or one of the choices, should be"
    )


def choose_meaning(given: Sequence[GivenAnswer], report: RowReport) -> list[int | None]:
    """Return the index of each correct choice; None where a row is broken, which is counted.

    All are positions, or all are texts of choices: the meaning that fits more rows. Where both fit
    all rows and differ, numbers of JSON or Parquet are positions, and texts are an error.
    """
    positions = [answer.by_position for answer in given]
    texts = [answer.by_text for answer in given]
    unsettled = [
        answer
        for answer in given
        if answer.by_position != answer.by_text and None not in (answer.by_position, answer.by_text)
    ]
    num_positions, num_texts = (len(given) - found.count(None) for found in (positions, texts))
    is_tie = num_positions == num_texts
    if unsettled and is_tie and not all(answer.is_number for answer in given):
        first = unsettled[0]
        raise InputError(
            f"{first.place}: {first.value!r:.{SHOWN_CHARS}} is both a position and the text of a"
            f" choice (as in {len(unsettled):,} of {len(given):,} rows); write positions from 0 as"
            " JSON numbers"
        )
    are_positions = num_positions > num_texts or is_tie
    name, other = ("position", "text") if are_positions else ("text", "position")
    if unsettled:
        report.notes.append(
            f"correct choices are read as {name}s of choices; {len(unsettled):,} of"
            f" {len(given):,} could be {other}s too, first {unsettled[0].place}"
        )
    found = positions if are_positions else texts
    for answer, index in zip(given, found, strict=True):
        if index is None:
            report.add_broken(
                f"{answer.place}: {answer.value!r:.{SHOWN_CHARS}} isn't the {name} of a choice; the"
                f" other rows give {name}s"
            )
    return found
