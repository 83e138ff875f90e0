"""Decoding options of a command, which override the defaults in a model's folder."""

from typing import Annotated, Any

from cyclopts import Parameter
from pydantic import Field, create_model

from bertkit.base.errors import SettingsError
from bertkit.base.settings import Settings, validate
from bertkit.decoding.settings import DecodingSettings


def _without_defaults() -> type[Settings]:
    """Create a copy of `DecodingSettings` in which all fields are optional; bounds stay."""
    fields: dict[str, Any] = {}
    for name, info in DecodingSettings.model_fields.items():
        flags = [each for each in info.metadata if isinstance(each, Parameter)]
        kind: Any = info.annotation
        for bound in info.metadata:
            if bound not in flags:
                kind = Annotated[kind, bound]
        kind = kind | None
        for flag in flags:
            kind = Annotated[kind, flag]
        fields[name] = (kind, Field(None, description=info.description))
    return create_model("DecodingOverrides", __base__=Settings, **fields)


DecodingOverrides: Any = _without_defaults()


def override_decoding(settings: DecodingSettings, changes: Settings) -> DecodingSettings:
    """Return settings with the given changes applied.

    Args:
        settings: the model's own.
        changes: only fields that were set are applied. Sampling without `beams` sets beams to 1.
    """
    given = changes.model_dump(include=changes.model_fields_set, exclude_none=True)
    if given.get("sample"):
        given = {"beams": 1, **given}
    values = {**settings.model_dump(), **given}
    changed = validate(DecodingSettings, values, "how it is written")
    check_seed(changed, given.get("seed", 0))
    return changed


def check_seed(settings: DecodingSettings, seed: int) -> None:
    """Reject a seed that has no effect because nothing is sampled.

    Args:
        settings: how tokens are chosen.
        seed: the given seed; 0, the default, is always allowed.
    """
    if seed and not settings.sample:
        raise SettingsError("seed is for what is drawn; it needs sample")
