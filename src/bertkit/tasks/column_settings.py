"""Those of a task's settings that say which column of a file is what.

They are stored with a model, as its training data had them. Another file may have other columns,
so what reads one takes them again.
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
    """Settings with the columns of some tasks, none of which needs to be given.

    One that several tasks have is described as in each of them.
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
    """A model's settings, for a file whose columns have other names."""
    given = columns.model_dump(exclude_none=True)
    foreign = sorted(given.keys() - type(settings).model_fields.keys())
    if foreign:
        raise SettingsError(f"a model of this task reads no {', '.join(foreign)}; leave it out")
    return settings.model_copy(update=given)
