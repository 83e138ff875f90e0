"""The default settings of a run, so that pages can show which ones were chosen."""

from collections.abc import Mapping

from pydantic import JsonValue

from bertkit.base.settings import Settings, validate
from bertkit.base.wings import TEXT_TASKS, load_object
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tasks.table import TASKS


def list_defaults(stored: Mapping[str, JsonValue], source: str) -> dict[str, JsonValue]:
    """Return the default settings for the kind and model of stored ones; `source` names these."""
    if stored.get("task") is None:
        task = TEXT_TASKS.get(str(stored.get("kind")))
        given = {name: stored[name] for name in ("size", "model", "recipe") if stored.get(name)}
        recipe: type[Settings] = PretrainSettings if task is None else load_object(task.settings)
        return validate(recipe, given, source).model_dump(mode="json")
    given = {name: stored[name] for name in ("features",) if stored.get(name)}
    settings = validate(FineTuneSettings, given, source)
    defaults = {**settings.model_dump(mode="json"), **settings.undecided}
    entry = TASKS.get(str(stored["task"]))
    own = {} if entry is None else entry.settings().model_dump(mode="json")
    return {**own, **defaults}
