"""Settings for searching a file of texts."""

from typing import Literal

from pydantic import Field

from bertkit.data.tables.settings import CorpusSettings
from bertkit.embeddings.settings import EmbedderSettings
from bertkit.embeddings.similarity_names import Similarity


class SearchSettings(CorpusSettings, EmbedderSettings):
    """Settings of `bertkit search`."""

    prompt: str | None = Field(
        None,
        description="Text to prepend to each query; an empty text for none. By default the model's"
        " prompt named query.",
    )
    prompt_name: str | None = Field(
        None, description="Name of the model's prompt to prepend to each query."
    )
    passage_prompt: str | None = Field(
        None,
        description="Text to prepend to each text of the corpus; an empty text for none. By default"
        " the model's prompt named document, passage or corpus.",
    )
    similarity: Similarity | None = Field(
        None,
        description="Similarity measure; by default that of the model's folder, else cosine."
        " Distances are negated: higher is always more similar.",
    )
    index: Literal["auto", "exact", "approximate"] = Field(
        "auto",
        description="Compare each query with all vectors (exact), or only with those of the nearest"
        " clusters (approximate, needs faiss). auto is exact up to a million vectors.",
    )
    rebuild: bool = Field(False, description="Rebuild an existing index from scratch.")
