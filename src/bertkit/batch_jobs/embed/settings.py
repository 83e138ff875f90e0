"""Settings for embedding a file."""

from pydantic import Field

from bertkit.data.tables.settings import TableSettings
from bertkit.embeddings.settings import EmbedderSettings


class EmbedSettings(TableSettings, EmbedderSettings):
    """Settings of `bertkit embed`."""

    restart: bool = Field(
        False, description="Start over, and discard rows of earlier, unfinished or finished work."
    )
    overwrite: bool = Field(
        False, description="Replace an existing output of another input or other settings."
    )

    @property
    def of_embedder(self) -> EmbedderSettings:
        """The settings of the embedder."""
        return EmbedderSettings(**self.model_dump(include=set(EmbedderSettings.model_fields)))
