"""The base class of the models' configs."""

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ValidationError

from bertkit.base.errors import CheckpointError, SettingsError
from bertkit.base.settings import describe_validation


class ModelConfig(BaseModel):
    """Base of the configs: the content of a `config.json`.

    Raises:
        SettingsError: a value is invalid.
    """

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise SettingsError(f"{type(self).__name__}: {describe_validation(error)}") from None

    @classmethod
    def from_dict(cls, values: dict[str, Any], source: str | Path) -> Self:
        """Build the config from a foreign `config.json`.

        Raises:
            CheckpointError: it is invalid, belongs to another kind of model, or asks for something
                unsupported.
        """
        try:
            config = cls(**values)
            config.to_dict()  # unknown keys may be kept, so they must be serializable
        except (SettingsError, ValueError, TypeError) as error:
            raise CheckpointError(f"{source}: {error}") from None
        return config

    def to_dict(self) -> dict[str, Any]:
        """Return all keys for `config.json`, unknown ones included."""
        return self.model_dump(mode="json")
