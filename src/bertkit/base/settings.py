"""The base class of settings: one definition serves flags, TOML, documentation and saved copies."""

import hashlib
import reprlib
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from bertkit.base.errors import SettingsError

MAX_NAME_CHARS = 80
MAX_PROBLEMS = 20  # a foreign file may have any number of wrong keys

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80  # characters


class Settings(BaseModel):
    """Base of all settings: immutable, and a key that it doesn't know is an error.

    Each field carries its meaning, unit and range in `Field(description=…)`, which is what
    `--help` and the reference show.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the settings; equal settings have equal fingerprints."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


SettingsType = TypeVar("SettingsType", bound=Settings)


def parse_settings(kind: type[SettingsType], values: dict[str, Any], source: str) -> SettingsType:
    """Build settings from untrusted values.

    Args:
        kind: the settings class.
        values: field names and values.
        source: where the values came from, for the message.

    Raises:
        SettingsError: keys are unknown or missing, or have wrong values; the message lists them.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise SettingsError(f"{source}: {describe_validation(error)}") from None


def describe_validation(error: ValidationError) -> str:
    """Describe in one line which fields are wrong, and why."""
    problems = []
    for detail in error.errors(include_url=False)[:MAX_PROBLEMS]:
        name = ".".join(str(part) for part in detail["loc"])
        if not name.isprintable() or len(name) > MAX_NAME_CHARS:
            name = ascii(name[:MAX_NAME_CHARS])  # the key may come from a foreign file
        message = detail["msg"].removeprefix("Value error, ")
        has_input = detail["type"] not in {"missing", "value_error"}
        shown = f" (got {_SHORT.repr(detail['input'])})" if has_input else ""
        problems.append(f"{name}: {message}{shown}" if name else f"{message}{shown}")
    more = error.error_count() - MAX_PROBLEMS
    return "; ".join(problems) + (f"; and {more} more" if more > 0 else "")


def list_differences(old: Settings, new: Settings) -> list[str]:
    """List the fields that differ, as `name: old → new`."""
    before, after = old.model_dump(mode="json"), new.model_dump(mode="json")
    return [
        f"{name}: {before.get(name)!r} → {after.get(name)!r}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
