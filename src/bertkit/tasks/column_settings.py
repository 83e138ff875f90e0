"""The task settings that name the columns of a file.

They are stored with a model, with the column names of its training data. Another file may have
other columns, so every command that reads a file accepts them again.
"""

from collections import defaultdict
from typing import Any, TypeVar

from pydantic import Field, create_model

from bertkit.base.errors import SettingsError
from bertkit.base.settings import Settings
from bertkit.tasks.settings import TaskSettings

ENDINGS = ("_column", "_columns")

SettingsKind = TypeVar("SettingsKind", bound=TaskSettings)


def choose_columns(*kinds: type[TaskSettings]) -> type[Settings]:
    """Build a settings class with the column settings of some tasks, all of them optional.

    The description of a setting that several tasks share joins the descriptions of each.
    """
    types: dict[str, Any] = {}
    descriptions: defaultdict[str, list[str]] = defaultdict(list)
    for kind in kinds:
        for name, info in kind.model_fields.items():
            if name.endswith(ENDINGS) and info.annotation is not None:
                types[name] = info.annotation | None
                descriptions[name].append(info.description or "")
    fields: dict[str, Any] = {
        name: (type_, Field(None, description=" Or: ".join(dict.fromkeys(descriptions[name]))))
        for name, type_ in types.items()
    }
    return create_model("Columns", __base__=Settings, **fields)


def with_columns(settings: SettingsKind, columns: Settings) -> SettingsKind:
    """Return a model's settings with the column names of another file."""
    given = columns.model_dump(exclude_none=True)
    foreign = sorted(given.keys() - type(settings).model_fields.keys())
    if foreign:
        raise SettingsError(f"this task has no {', '.join(foreign)}; leave it out")
    return settings.model_copy(update=given)
