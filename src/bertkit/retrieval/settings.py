"""Settings for searching a file of texts."""

from typing import Literal

from pydantic import Field

from bertkit.data.tables.settings import TableSettings
from bertkit.embeddings.settings import EmbedderSettings
from bertkit.embeddings.similarity_names import Similarity


class SearchSettings(TableSettings, EmbedderSettings):
    """Settings of `bertkit search`."""

    prompt: str | None = Field(
        None,
        description="Prefix of each query; an empty text for none. By default the model's prompt"
        " named query.",
    )
    prompt_name: str | None = Field(
        None, description="Use the model's prompt of this name as prefix of each query."
    )
    passage_prompt: str | None = Field(
        None,
        description="Prefix of each text of the corpus; an empty text for none. By default the"
        " model's prompt named document, passage or corpus.",
    )
    similarity: Similarity | None = Field(
        None,
        description="Similarity measure; by default the model's, else cosine. Distances are shown"
        " as negative numbers, so higher is always more similar.",
    )
    index: Literal["auto", "exact", "approximate"] = Field(
        "auto",
        description="Exact search compares each query with all vectors; approximate search only"
        " with those in the nearest cells, and needs faiss. auto is exact up to a million vectors.",
    )
    rebuild: bool = Field(False, description="Rebuild the index, even if there is one.")

    @property
    def of_embedder(self) -> EmbedderSettings:
        """The embedder's settings, without the query prompt."""
        names = set(EmbedderSettings.model_fields) - {"prompt", "prompt_name"}
        return EmbedderSettings(**self.model_dump(include=names))
