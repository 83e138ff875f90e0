"""The result of a review: lines for a terminal, columns beside the rows, a table in a notebook."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from markupsafe import Markup
from pydantic import JsonValue

from bertkit.base.errors import pluralize
from bertkit.base.json_files import with_nulls
from bertkit.data.writers import Row
from bertkit.recipes.review.judgment import Judgment
from bertkit.recipes.review.label_errors import LEAST_LIFT, PlantedErrors
from bertkit.recipes.review.quality import LearningCurve, describe_confused
from bertkit.recipes.review.repeats import RepeatedGroup, describe_repeats
from bertkit.recipes.review.rows import ReviewedRows
from bertkit.reports.notebook import Tabular, show_rows
from bertkit.reports.text import format_metric, make_legible, show
from bertkit.tasks.classify.examples import CONTRADICTED
from bertkit.tasks.columns import SHOWN_CHARS
from bertkit.tasks.evaluation import Evaluation
from bertkit.tasks.look_alikes import describe_look_alikes, find_typing_errors
from bertkit.tasks.sections import show_name
from bertkit.tasks.task import AnyTask, TaskExample

SHOWN_ROWS, SHOWN_CONFLICTS, SHOWN_PAIRS, TEXT_CHARS = 5, 3, 3, 60
MAX_TWINS = 20  # that a row names
RARE = 10  # rows of a label


@dataclass(frozen=True)
class Quality:
    """How well rows are predicted by the others.

    Attributes:
        metric: the one that is shown.
        evaluation: by cross-validation.
        curve: of the metric over the number of rows; None if none fits.
        hard: numbers of the rows that are predicted wrongly, however many others there are.
    """

    metric: str
    evaluation: Evaluation
    curve: LearningCurve | None
    hard: list[int]

    def to_json(self) -> dict[str, object]:
        """Return metrics and their intervals."""
        return {"metrics": self.evaluation.metrics, "intervals": self.evaluation.intervals}


@dataclass(frozen=True)
class ReviewedRow(Tabular):
    """What was found about a row."""

    number: int  # of the row in the file, from 1
    place: str  # file and line
    text: str
    label: str  # as given
    looks_wrong: bool
    likely: str  # what is expected instead of the label; empty unless that looks wrong
    probability: float  # of that; NaN if there is none
    suspicion: float  # that the label is wrong, higher is more suspicious; NaN if it isn't known
    notes: Sequence[str] = ()  # what else was found
    twins: Sequence[int] = ()  # numbers of the rows that repeat it


@dataclass(frozen=True, repr=False)
class ReviewResult:
    """What a review found.

    Attributes:
        rows: the reviewed rows.
        task: the task that they are for.
        repeats: rows of all files that repeat each other; those of the reviewed file come first.
        names: of all files.
        judgment: of each usable row's label; None if labels can't be checked.
        planted: how many exchanged labels were found.
        quality: how well rows are predicted.
        obstacle: why labels can't be checked.
    """

    rows: ReviewedRows
    task: AnyTask
    repeats: Sequence[RepeatedGroup]
    names: Sequence[str]
    judgment: Judgment | None = None
    planted: PlantedErrors | None = None
    quality: Quality | None = None
    obstacle: str | None = None

    @property
    def examples(self) -> list[TaskExample]:
        """The usable rows."""
        return self.rows.examples

    def describe(self) -> str:
        """Describe what was found, a finding a line."""
        return "\n".join(self.lines)

    __repr__ = describe

    @property
    def lines(self) -> list[str]:
        """The findings, a line each."""
        return [
            *self._describe_rows(),
            *self._describe_errors(),
            *describe_repeats(self.repeats, self.names),
            *self._describe_conflicts(),
            *self._describe_quality(),
        ]

    def _describe_rows(self) -> Iterator[str]:
        labeled = self.rows.labeled
        if self.obstacle is not None:
            yield f"{labeled.name}: {self.obstacle}"
        else:
            yield from labeled.describe(self.task)
            warnings = labeled.list_warnings(self.task)
            # Contradictions are told as repeats; what names an option is for training.
            told = (line for line in warnings if CONTRADICTED not in line and "; --" not in line)
            spellings = describe_look_alikes(labeled.counts.labels)
            yield from (f"{labeled.name}: {line}" for line in (*told, *spellings))

    def _describe_errors(self) -> Iterator[str]:
        if self.judgment is None or self.planted is None:
            return
        number, planted = self.judgment.errors.num_errors, self.planted
        if planted.lift < LEAST_LIFT or (not number and planted.num_found < planted.number / 5):
            yield (
                "wrong labels can't be found, as the texts hardly say the labels: errors planted"
                " for a check look like other rows; is it the right column? --label-column names"
                " another"
            )
            return
        check = ""
        if planted.number:
            found = f"{planted.num_found:,} of {planted.number:,}"
            check = f" (of errors planted for a check {found} are found"
            if number and planted.lift < math.inf:
                often = f"wrong {planted.lift:.2g} times as often as one drawn at random"
                check += f"; a label that is named is {often}"
            check += ")"
        yield f"{number:,} of {pluralize(len(self.examples), 'label')} look wrong{check}"
        for each in islice(self.judgment.errors.ranking.tolist(), min(SHOWN_ROWS, number)):
            row = self.describe_row(each)
            yield (
                f"  {row.place}: {show(row.text, TEXT_CHARS)!r} is {show(row.label, SHOWN_CHARS)},"
                f" likely {show(row.likely, SHOWN_CHARS)} ({row.probability:.2f})"
            )

    def _describe_conflicts(self) -> Iterator[str]:
        """Show the first texts of this file that stand twice with different labels."""
        found = dict[tuple[int, int], tuple[RepeatedGroup, tuple[int, int]]]()
        for group in self.repeats:
            if (pair := group.conflict) and not group.files[pair[0]]:
                found.setdefault((group.members[pair[0]], group.members[pair[1]]), (group, pair))
        for (first, second), (group, pair) in islice(found.items(), SHOWN_CONFLICTS):
            example, file = self.examples[first], group.files[pair[1]]
            text = example.shown or example.arguments[0][1]  # sentences show none
            place = f"in {self.names[file]}"
            if not file:
                place = "at " + self.examples[second].place.removeprefix(f"{self.names[0]}, ")
            labels = [show(group.labels[place] or "", SHOWN_CHARS) for place in pair]
            nearly = " where it is nearly the same" if group.kind == "near" else ""
            yield (
                f"  {example.place}: {show(text, TEXT_CHARS)!r} is {labels[0]}, and"
                f" {labels[1]} {make_legible(place)}{nearly}"
            )

    def _describe_quality(self) -> Iterator[str]:
        quality = self.quality
        if quality is None:
            return
        name, evaluation = quality.metric, quality.evaluation
        shown = format_metric(name, evaluation.metrics[name], evaluation.intervals.get(name))
        more = "" if quality.curve is None else f"; {quality.curve.describe(name)}"
        labels = self.rows.labeled.counts.labels
        rarest = min(labels.items(), key=lambda item: item[1], default=("", RARE))
        if rarest[1] < RARE:
            more += f"; rarest label: {show(rarest[0], SHOWN_CHARS)}, {pluralize(rarest[1], 'row')}"
            more += ", left out" if rarest[1] == 1 else ""
        yield f"{show_name(name)} by cross-validation {shown}{more}"
        pairs = describe_confused(evaluation, SHOWN_PAIRS)
        if pairs and len(evaluation.labels) > 2:
            yield f"confused most: {', '.join(map(show, pairs))}"
        if hard := [number for number in quality.hard if not self.is_wrong(number)]:
            many = pluralize(len(hard), "further row")
            yield (
                f"{many} predicted wrongly however many others there are, the first"
                f" {self.examples[hard[0]].place}: the text may not say the label"
            )

    @cached_property
    def typing_errors(self) -> dict[str, str]:
        """Rare labels that may be typing errors, and the frequent ones that may be meant."""
        return dict(find_typing_errors(Counter(self.rows.labeled.label_names)))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each row in the file, from 1, by its place."""
        return {record.place: number for number, record in enumerate(self.rows.records, start=1)}

    @cached_property
    def groups(self) -> dict[int, RepeatedGroup]:
        """The group of each usable row that repeats others; the first where there are several."""
        found: dict[int, RepeatedGroup] = {}
        for group in self.repeats:
            for member in group.members if group.kind != "template" else ():
                found.setdefault(member, group)
        return {member: group for member, group in found.items() if member < len(self.examples)}

    @property
    def ranking(self) -> list[int]:
        """The usable rows: those that look wrong, with other labels, repeated; then the others."""
        numbers: list[int] = list(range(len(self.examples)))
        if self.judgment is not None:
            numbers = self.judgment.errors.ranking.tolist()
        return sorted(numbers, key=self._find_urgency)

    def _find_urgency(self, number: int) -> int:
        """Return 0 for a row that looks wrong, 1 for one with a conflict, 2 for a repeated one."""
        if self.is_wrong(number) or self.rows.show_label(number) in self.typing_errors:
            return 0
        group = self.groups.get(number)
        return 3 if group is None else 1 if group.conflict else 2

    def describe_row(self, number: int) -> ReviewedRow:
        """Return what was found about a usable row."""
        example, judged = self.examples[number], self.judgment
        is_wrong, likely, probability, suspicion = False, "", math.nan, math.nan
        if judged is not None:
            is_wrong, suspicion = self.is_wrong(number), round(judged.errors.suspicion[number], 4)
        if judged is not None and is_wrong:
            likely, probability = judged.likely[number], round(judged.probability[number], 4)
        notes, label = self._list_notes(number), self.rows.show_label(number)
        if label in self.typing_errors:
            notes.insert(0, f"{label} may be a typing error of {self.typing_errors[label]}")
        return ReviewedRow(
            number=self.numbers[example.place],
            place=example.place,
            text=self.rows.show_text(number),
            label=label,
            looks_wrong=is_wrong,
            likely=likely,
            probability=probability,
            suspicion=suspicion,
            notes=notes,
            twins=[
                self.numbers[self.examples[member].place] for member in self._list_twins(number)
            ],
        )

    def _list_twins(self, number: int) -> list[int]:
        """Return the first other rows of the reviewed file that repeat a row."""
        group = self.groups.get(number)
        members = () if group is None else group.members[: MAX_TWINS + 1]
        return [each for each in members if each != number and each < len(self.examples)]

    def _list_notes(self, number: int) -> list[str]:
        """Return what is said of a row besides its label."""
        group, notes = self.groups.get(number), list[str]()
        if group is None:
            return notes
        twins, how = self._list_twins(number), "nearly " if group.kind == "near" else ""
        num_more = bisect_left(group.members, len(self.examples)) - 2
        if twins:
            more = f" and {num_more:,} more" if num_more else ""
            notes.append(f"{how}repeats {self.examples[twins[0]].place}{more}")
        if group.conflict:
            notes.append("with another label")
        others = {self.names[file] for file in group.files if file}
        return [*notes, *(f"stands {how}in {name} too" for name in sorted(others))]

    def to_rows(self) -> list[Row]:
        """Return the cells of each row of the file, with the findings in columns beside them."""
        from bertkit.recipes.review.table import list_rows

        return list(list_rows(self))

    def to_json(self) -> dict[str, JsonValue]:
        """Return the findings as JSON values; undefined numbers are null."""
        suspects = [self.describe_row(number) for number in self.ranking if self.is_wrong(number)]
        found: dict[str, JsonValue] = with_nulls(
            {
                "data": self.rows.labeled.name,
                "task": self.task.name,
                "num_rows": len(self.examples),
                "obstacle": self.obstacle,
                "looks_wrong": [vars(row) for row in suspects],
                "planted": None if self.planted is None else vars(self.planted),
                **({} if self.quality is None else self.quality.to_json()),
                "findings": self.lines,
            }
        )
        return found

    def is_wrong(self, number: int) -> bool:
        """Whether a usable row's label looks wrong."""
        return self.judgment is not None and bool(self.judgment.errors.is_error[number])

    def _repr_html_(self) -> str:
        """Show the findings in a notebook, and the rows that look wrong as a table."""
        suspects = (self.describe_row(number) for number in self.ranking if self.is_wrong(number))
        lines = Markup("<p>{}</p>").format(Markup("<br>").join(self.lines))
        return f"{lines}{show_rows([row.as_row() for row in suspects])}"
