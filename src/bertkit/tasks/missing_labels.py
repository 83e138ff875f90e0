"""Marks that stand where a label is missing, such as the -1 and - of public data sets.

Whether a label is such a mark depends on the others of its file: -1 is a class beside 1 alone, and
a mark beside 0, 1 and 2.
"""

from collections.abc import Collection, Sequence
from decimal import Decimal

from bertkit.tasks.columns import NUMBER, SHOWN_LABELS, name_labels

NEGATIVE_MARKS = ("-1", "-100")  # of datasets of the Hub, and of losses that ignore a label
SIGN_MARKS = ("-", "_")  # of SNLI and MultiNLI where annotators disagree, and of CoNLL-U
WORD_MARKS = ("nan", "NaN", "<NA>", "#N/A")  # as pandas and Excel write a missing value
MARKS = frozenset((*NEGATIVE_MARKS, *SIGN_MARKS, *WORD_MARKS))
MIN_LABELS = 2  # beside a mark


def find_marks(
    labels: Collection[str], known: Sequence[str] | None = None, *, are_tags: bool = False
) -> set[str]:
    """Return which labels of a file are marks of a missing label.

    `known` are the labels of the model, of the training data, or those that a user listed: a label
    among them is none. Without them, a negative number is a mark beside whole numbers from 0 on,
    unless these are only 0 and its opposite, as in -1, 0 and 1 for sentiment; a sign is one if no
    other label is made of signs alone, as in + and -.
    """
    found = MARKS.intersection(labels)
    if known:
        return set(found.difference(known))
    others = set(labels) - MARKS
    has_words = len(set(labels).difference(WORD_MARKS)) >= MIN_LABELS
    marks = set(found.intersection(WORD_MARKS)) if has_words else set[str]()
    if not found or len(others) < MIN_LABELS:
        return marks
    if all(any(character.isalnum() for character in label) for label in others):
        marks |= found.intersection(SIGN_MARKS)
    if _are_class_ids(others):
        for mark in found.intersection(NEGATIVE_MARKS):
            opposite = mark.lstrip("-")
            if are_tags or not others <= {"0", opposite, f"+{opposite}"}:
                marks.add(mark)
    return marks


def _are_class_ids(labels: Collection[str]) -> bool:
    """Whether those labels that are numbers are whole, and none is negative."""
    numbers = [Decimal(label) for label in labels if NUMBER.fullmatch(label)]
    return all(number >= 0 and number == number.to_integral_value() for number in numbers)


def explain_kept(labels: Collection[str], marks: Collection[str]) -> str | None:
    """Return a line about a label that often marks a missing one, and is read as a class here."""
    kept = sorted(MARKS.intersection(labels).difference(marks))
    others = sorted(set(labels).difference(kept, marks))
    if not kept or len(others) < MIN_LABELS or not _are_class_ids(others):
        return None
    marked = name_labels([repr(mark) for mark in kept])
    listed = ",".join(others[:SHOWN_LABELS]) + (",…" if len(others) > SHOWN_LABELS else "")
    return (
        f"{marked} is treated as a label. If it marks a missing label, list the real labels:"
        f" --labels {listed}"
    )
