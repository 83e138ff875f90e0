"""Classification examples: texts with labels, read from records."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from sys import intern
from typing import Self, TypeVar

from bertkit.base.errors import InputError, pluralize
from bertkit.data.problems import RowReport
from bertkit.data.tables.record import ClassName, Record
from bertkit.data.tables.records import RecordTable
from bertkit.reports.text import show
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.columns import (
    SHOWN_CHARS,
    find_column,
    name_labels,
    settle_class,
    sort_labels,
    take_label,
    take_labels,
    take_value,
)
from bertkit.tasks.labeled_table import find_columns
from bertkit.tasks.look_alikes import find_typing_errors
from bertkit.tasks.missing_labels import NEGATIVE_MARKS, explain_kept, find_marks
from bertkit.tasks.texts import TextExample, Texts, build_text_parser

FLAGS = {"0": False, "1": True, "false": False, "true": True}
FLAG_VALUES = FLAGS.keys() | {*NEGATIVE_MARKS}
OTHER_SEPARATORS = (";", "|", "/", ",")
CONTRADICTED = "an earlier text with a different label"
RARE = 0.2  # of the equal share of a label
# Pairs of labels, sorted by name, of which the second is clearly the positive one.
CLEAR_PAIRS = {
    ("-1", "+1"),
    ("-1", "1"),
    ("0", "1"),
    ("false", "true"),
    ("label_0", "label_1"),
    ("neg", "pos"),
    ("negative", "positive"),
    ("no", "yes"),
}


@dataclass(frozen=True, slots=True)
class ClassifyExample(TextExample):
    """A text or pair, with optional labels."""

    texts: Texts
    # any number with multi-label, repeated until `settle` has read flags; None if unknown
    labels: tuple[str, ...] | None = None
    place: str = ""  # file and line, for messages
    is_listed: bool = field(default=False, compare=False)  # whether its labels were a list

    @classmethod
    def build_parser(
        cls, settings: ClassifySettings, table: RecordTable, *, needs_answer: bool
    ) -> Callable[[Record], "ClassifyExample"]:
        """Build a function that reads text, pair and label from a record."""
        find_columns(settings, table, needs_answer=needs_answer)
        parse_texts = build_text_parser(settings, table)
        column = None
        if needs_answer:
            usual = settings.usual_columns["label"]
            column = find_column(table, "label", settings.label_column, usual)

        def parse(record: Record) -> ClassifyExample:
            if column is None:
                return ClassifyExample(parse_texts(record), place=record.place)
            if settings.multi_label:
                labels = take_labels(record, column, settings.label_separator)
            else:
                labels = (take_label(record, column),)
            # a million rows share few labels
            labels = tuple(one if isinstance(one, ClassName) else intern(one) for one in labels)
            cell = take_value(record, column)
            is_listed = isinstance(cell, list) or str(cell).lstrip().startswith("[")
            return ClassifyExample(parse_texts(record), labels, record.place, is_listed)

        return parse

    @classmethod
    def settle(
        cls,
        examples: list[Self],
        report: RowReport,
        settings: ClassifySettings,
        known: Sequence[str] = (),
    ) -> list[Self]:
        """Read lists of 0 and 1 as flags, and leave out examples without a label."""
        listed = settings.label_names or known
        examples = [_settle_classes(example, listed) for example in examples]
        if settings.multi_label:
            examples = _read_flags(examples, listed, report)
            if mark := find_separator(examples):
                report.notes.append(
                    f"no text has several labels, but some contain {mark!r}; to split them, use"
                    f" --label-separator {mark!r}"
                )
        found = {label for example in examples for label in example.label_names}
        marks = find_marks(found, listed)
        if not listed and (line := explain_kept(found, marks)):
            report.notes.append(line)
        return [each for one in examples if (each := _settle_one(one, marks, settings, report))]

    @property
    def label_names(self) -> Sequence[str]:
        """Its labels."""
        return self.labels or ()

    @property
    def stratum(self) -> str | None:
        """Its label; of several, none is held out in proportion."""
        return self.labels[0] if self.labels and len(self.labels) == 1 else None


Labeled = TypeVar("Labeled", bound=ClassifyExample)


def _settle_classes(example: Labeled, listed: Sequence[str]) -> Labeled:
    if not any(isinstance(label, ClassName) for label in example.label_names):
        return example
    labels = (intern(settle_class(label, listed)) for label in example.label_names)
    return replace(example, labels=tuple(labels))


def _read_flags(examples: list[Labeled], listed: Sequence[str], report: RowReport) -> list[Labeled]:
    """Read lists of as many 0 and 1 in all examples as flags; else drop repeated labels."""
    lists = [example.label_names for example in examples]
    num_flags = len(lists[0]) if lists else 0
    are_flags = num_flags > 1 and all(
        len(one) == num_flags and FLAG_VALUES.issuperset(one) for one in lists
    )
    if are_flags and listed and len(listed) != num_flags:
        are_flags = any(len(set(one)) < len(one) for one in lists)  # names don't repeat
    if not are_flags:
        return [replace(one, labels=tuple(dict.fromkeys(one.label_names))) for one in examples]
    numbers = tuple(map(str, range(num_flags)))
    names = numbers if {*listed} < {*numbers} else listed  # the last were never set in training
    if len(names) != num_flags:
        raise InputError(
            f"{examples[0].place} has {num_flags} flags, 0 or 1, and there are {len(names)} labels"
            f" ({name_labels(names)}); name as many with --labels"
        )
    report.notes.append(
        f"each list is read as {num_flags} flags, 1 for a label that the text has; the labels are"
        f" {name_labels(names)}" + ("" if listed else ", which --labels can name")
    )
    return [replace(one, labels=_name_flags(one.label_names, names)) for one in examples]


def find_separator(examples: Sequence[ClassifyExample]) -> str | None:
    """Return a mark that seems to separate labels, though it isn't the separator; else None.

    No text has several labels or a list of them, and the parts of some labels are labels too.
    """
    labels = {label for example in examples for label in example.label_names}
    if any(len(example.label_names) > 1 or example.is_listed for example in examples):
        return None
    for mark in OTHER_SEPARATORS:
        joined = [label for label in labels if mark in label]
        parts = Counter(part.strip() for label in joined for part in label.split(mark))
        if any(count > 1 or part in labels for part, count in parts.items()):
            return mark
    return None


def _name_flags(flags: Sequence[str], names: Sequence[str]) -> tuple[str, ...] | None:
    """Return the labels whose flags are set; None if some are marks of a missing label."""
    if not FLAGS.keys() >= {*flags}:
        return None
    return tuple(name for name, flag in zip(names, flags, strict=True) if FLAGS[flag])


def _settle_one(
    example: Labeled, marks: set[str], settings: ClassifySettings, report: RowReport
) -> Labeled | None:
    """Return an example without marks; None if it has no label or an unlisted one."""
    given = example.label_names
    labels = tuple(label for label in given if label not in marks)
    listed = settings.label_names
    unknown = [label for label in labels if listed is not None and label not in listed]
    if unknown:
        report.add_broken(
            f"{example.place} has the label {unknown[0]!r:.{SHOWN_CHARS}}, which isn't among"
            f" labels ({settings.labels:.{SHOWN_CHARS}})"
        )
        return None
    if example.labels is None or (given and not labels):
        missing = ": the flags mark the labels as missing (-1)"
        mark = missing if example.labels is None else f" has the mark {given[0]!r}"
        report.add_unlabeled(f"{example.place}{mark}")
        return None
    return example if labels == given else replace(example, labels=labels)


def find_labels(settings: ClassifySettings, examples: Sequence[ClassifyExample]) -> tuple[str, ...]:
    """Return the listed labels, or those of the examples, sorted by value or by name."""
    found = {label for example in examples for label in example.labels or ()}
    if not found:
        raise InputError("no example has a label")
    if len(found) == 1 and not settings.multi_label:
        raise InputError(
            f"all examples have the label {next(iter(found))!r:.{SHOWN_CHARS}}; at least two labels"
            " are needed"
        )
    labels = settings.label_names or sort_labels(found)
    positive = settings.positive_label
    if positive is not None and positive not in labels:
        raise InputError(
            f"no example has the positive_label {positive!r:.{SHOWN_CHARS}}; labels are"
            f" {name_labels(labels)}"
        )
    if settings.metric == "f1" and not has_clear_positive(settings, labels):
        raise InputError(
            "metric f1 needs one label: list two labels, the positive one last, or use macro_f1;"
            f" labels are {name_labels(labels)}"
        )
    return labels


def has_clear_positive(settings: ClassifySettings, labels: Sequence[str]) -> bool:
    """Whether the positive label for F1 is unambiguous: named, listed second, or a usual pair."""
    is_named, is_listed = settings.positive_label is not None, settings.labels is not None
    is_usual = tuple(map(str.casefold, labels)) in CLEAR_PAIRS
    return is_named or is_usual or (is_listed and len(labels) == 2)


def weigh_labels(
    settings: ClassifySettings, labels: Sequence[str], examples: Sequence[ClassifyExample]
) -> tuple[float, ...]:
    """Compute the class weights of the loss; empty if all are equal.

    With one label per text: examples / (labels x examples of that label), as in scikit-learn, so
    that the mean over all examples is 1. With multi-label: the ratio of examples without the label
    to examples with it. A label without training examples has weight 1.
    """
    if settings.class_weights == "none":
        return ()
    counts = Counter(label for example in examples for label in example.labels or ())
    number = len(examples)
    if settings.multi_label:
        return tuple(
            (number - counts[label]) / counts[label] if 0 < counts[label] < number else 1.0
            for label in labels
        )
    return tuple(
        number / (len(counts) * counts[label]) if counts[label] else 1.0 for label in labels
    )


def advise_weights(examples: Sequence[ClassifyExample]) -> list[str]:
    """Name the rarest label, except typing errors, if it has under a fifth of an equal share."""
    counts = Counter(label for example in examples for label in example.labels or ())
    if not counts:
        return []
    errors = {label for label, _ in find_typing_errors(counts)}
    others = (item for item in counts.items() if item[0] not in errors)
    rarest, least = min(others, key=lambda item: item[1])
    if least * len(counts) >= RARE * counts.total():
        return []
    shown = f"only {least:,} of {counts.total():,} have the label '{show(rarest, SHOWN_CHARS)}'"
    return [f"{shown}; --class-weights balanced gives rare labels more weight"]


def list_warnings(examples: Sequence[ClassifyExample]) -> list[str]:
    """Report whether texts are pairs, and how many contradict others or have no label."""
    lines = []
    if any(example.texts.pair is not None for example in examples):
        lines.append("they are pairs of texts")
    labels_of: dict[Texts, frozenset[str]] = {}
    sets = ((one, frozenset(one.label_names)) for one in examples)
    others = [one for one, labels in sets if labels_of.setdefault(one.texts, labels) != labels]
    if others:
        repeat = "repeats" if len(others) == 1 else "repeat"
        lines.append(
            f"{pluralize(len(others), 'row')} {repeat} {CONTRADICTED}, first at {others[0].place}"
        )
    num_bare = sum(example.labels == () for example in examples)
    if num_bare:
        lines.append(f"{num_bare:,} of {len(examples):,} texts without any label")
    return lines
