"""Settings of `bertkit review`."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from bertkit.base.errors import SettingsError
from bertkit.base.settings import Count, redefine
from bertkit.data.tables.records import RecordTable
from bertkit.data.tables.settings import RecordSettings
from bertkit.recipes.settings import EvaluateSettings
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.columns import find_usual
from bertkit.tasks.labeled_table import check_columns, check_labels
from bertkit.tasks.settings import TaskSettings
from bertkit.tasks.table import TASKS


class ReviewSettings(RecordSettings):
    """Settings of `bertkit review`."""

    multi_label: bool = redefine(ClassifySettings, "multi_label")
    label_separator: Annotated[str, Field(min_length=1)] = redefine(
        ClassifySettings, "label_separator"
    )
    next: Count | None = Field(
        default=None,
        description="Suggest this many rows to label next: DATA is then rows without labels, the"
        " further files are rows with labels, and --model is a fine-tuned model.",
    )
    overwrite: bool = redefine(EvaluateSettings, "overwrite")


def choose_settings(
    table: RecordTable, settings: ReviewSettings, columns: Mapping[str, object]
) -> TaskSettings:
    """Return the settings of a table's task, whose columns are named or found."""
    kind = TASKS[choose_task(table, columns)].settings
    values = {**settings.model_dump(exclude_unset=True), **columns}
    chosen: TaskSettings = kind(
        **{key: value for key, value in values.items() if key in kind.model_fields}
    )
    check_columns(chosen, table, needs_answer=settings.next is None)
    if settings.next is None:
        check_labels(chosen, table)
    return chosen


def choose_task(table: RecordTable, named: Mapping[str, object]) -> str:
    """Return the task that a table's format and columns show: by default, to classify."""
    columns = set(table.columns or ())
    if table.format == "squad" or {"question", "context", "answers"} <= columns:
        return "answer"
    if (
        table.format == "conll"
        or {"tokens", "tags"} <= columns
        or {"tokens", "ner_tags"} <= columns
    ):
        return "tag"
    if "choices" in columns:
        return "choose"
    usual = (TASKS[task].settings.usual_columns["label"] for task in ("classify", "regress"))
    label, number = (find_usual(table.columns, names) for names in usual)
    is_number = table.columns and not named.get("label_column") and number and not label
    return "regress" if is_number else "classify"


def check_request(settings: ReviewSettings, model: object) -> None:
    """Refuse --next without a model."""
    if settings.next is not None and model is None:
        raise SettingsError(
            "--next needs a fine-tuned model, whose predictions say what it is unsure of; name it"
            " with --model"
        )
