"""The rows of a file to review: its records as they are, and the examples made of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bertkit.base.errors import InputError
from bertkit.data.tables.record import Record
from bertkit.data.tables.records import RecordTable
from bertkit.recipes.finetune.data import TaskSet
from bertkit.tasks.answer.examples import AnswerExample
from bertkit.tasks.choose.examples import ChooseExample
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.columns import NUMBER
from bertkit.tasks.regress.task import RegressExample
from bertkit.tasks.settings import TaskSettings
from bertkit.tasks.table import TASKS
from bertkit.tasks.task import AnyTask, TaskExample

NO_ANSWER = "(no answer)"
MOST_GRADES = 20  # different whole numbers that are labels; more are numbers to predict


@dataclass(frozen=True)
class ReviewedRows:
    """The rows of a file, and the examples of those that can be used."""

    labeled: TaskSet
    records: Sequence[Record]  # of all rows but broken ones
    settings: TaskSettings

    @property
    def kind(self) -> type[AnyTask]:
        """The task that the rows are for."""
        return _find_kind(self.settings)

    @property
    def examples(self) -> list[TaskExample]:
        """The usable rows, in order."""
        return self.labeled.examples

    def show_text(self, number: int) -> str:
        """Return the text of a usable row; those of a pair, or question and context, in lines."""
        return "\n".join(text for _, text in self.examples[number].arguments if text)

    def show_label(self, number: int) -> str:
        """Return the label of a usable row as text; empty if it has none."""
        example = self.examples[number]
        if isinstance(example, AnswerExample) and example.answers is not None:
            return " | ".join(dict.fromkeys(one.text for one in example.answers)) or NO_ANSWER
        if isinstance(example, ChooseExample) and example.label is not None:
            return example.choices[example.label]
        value = getattr(example, "number", None)
        return f"{value:g}" if value is not None else ", ".join(example.label_names)


def _find_kind(settings: TaskSettings) -> type[AnyTask]:
    return next(entry.load() for entry in TASKS.values() if type(settings) is entry.settings)


def read_rows(
    table: RecordTable, settings: TaskSettings, *, known: Sequence[str] = (), is_pool: bool = False
) -> ReviewedRows:
    """Read all rows of a table; those of a pool need no labels.

    Labels to classify that are numbers, with decimals or very many, become numbers to predict.
    """
    kind, records = _find_kind(settings), list[Record]()
    parse = kind.example_kind.build_parser(settings, table, needs_answer=not is_pool)
    settle = partial(kind.example_kind.settle, settings=settings, known=known)

    def keep(record: Record) -> TaskExample:
        records.append(record)
        return parse(record)

    examples = table.read(keep, None if is_pool else settle)
    if not examples:
        raise InputError(f"{table.name} has no rows that can be reviewed")
    rows = ReviewedRows(TaskSet(table.name, [table], examples), records, settings)
    return _read_numbers(rows) if not is_pool and not known else rows


def _read_numbers(rows: ReviewedRows) -> ReviewedRows:
    """Return the rows with numbers in place of labels, if the labels are measurements."""
    examples = [one for one in rows.examples if isinstance(one, ClassifyExample)]
    labels = {label for one in examples for label in one.label_names}
    is_single = all(len(one.label_names) == 1 for one in examples)
    if not labels or not is_single or not all(map(NUMBER.fullmatch, labels)):
        return rows
    if len(labels) <= MOST_GRADES and not any("." in label for label in labels):
        return rows
    numbered: list[TaskExample] = [
        RegressExample(one.texts, float(one.label_names[0]), one.place) for one in examples
    ]
    values = rows.settings.model_dump(exclude_unset=True)
    settings = TASKS["regress"].settings
    kept = {name: value for name, value in values.items() if name in settings.model_fields}
    labeled = TaskSet(rows.labeled.name, rows.labeled.tables, numbered)
    return ReviewedRows(labeled, rows.records, settings(**kept))
