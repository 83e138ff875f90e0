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
        description="Put this before each query, as it stands; the empty text for nothing. By"
        " default the model's prompt named query.",
    )
    prompt_name: str | None = Field(
        None, description="Put the model's prompt of this name before each query."
    )
    passage_prompt: str | None = Field(
        None,
        description="Put this before each text of the corpus; the empty text for nothing. By"
        " default the model's prompt named document, passage or corpus.",
    )
    similarity: Similarity | None = Field(
        None,
        description="How vectors are compared; by default as the model's folder says, else cosine."
        " Distances are shown negative: more is always more alike.",
    )
    index: Literal["auto", "exact", "approximate"] = Field(
        "auto",
        description="Compare each query with all vectors, or only with those of the cells nearest"
        " to it, which needs faiss. auto compares with all up to a million vectors.",
    )
    rebuild: bool = Field(
        False, description="Make the index anew, though there is one; its vectors are dropped."
    )

    @property
    def of_embedder(self) -> EmbedderSettings:
        """The embedder's settings, without the query prompt."""
        names = set(EmbedderSettings.model_fields) - {"prompt", "prompt_name"}
        return EmbedderSettings(**self.model_dump(include=names))
