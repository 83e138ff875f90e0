"""Settings for embedding a file."""

from pydantic import Field

from bertkit.data.tables.settings import CorpusSettings
from bertkit.embeddings.settings import EmbedderSettings


class EmbedSettings(CorpusSettings, EmbedderSettings):
    """Settings of `bertkit embed`."""

    restart: bool = Field(
        False, description="Start over, and discard rows of earlier, unfinished or finished work."
    )
    overwrite: bool = Field(
        False, description="Replace an existing output of another input or other settings."
    )
