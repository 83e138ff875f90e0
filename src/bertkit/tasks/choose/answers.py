"""The correct choice of a record: its position, or its text; one meaning for a whole file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bertkit.base.errors import InputError
from bertkit.data.problems import RowReport
from bertkit.data.tables.record import BrokenRowError, Record
from bertkit.tasks.columns import SHOWN_CHARS, take_answer


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """What a record gives as the correct choice."""

    value: str
    is_number: bool  # a number of JSON or Parquet; a text of digits isn't one
    by_position: int | None  # index of the choice, if the value is its position
    by_text: int | None  # index of the choice, if the value is its text
    place: str  # file, line and column, to begin a message


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
