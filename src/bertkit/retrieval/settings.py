"""Settings of search, embedding and feature extraction."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bertkit.data.tables.settings import CorpusSettings, TableSettings
from bertkit.inference.embeddings.settings import EmbedderSettings, FeatureSettings, Similarity
from bertkit.inference.settings import EngineSettings


class SearchSettings(CorpusSettings, EmbedderSettings):
    """Settings of `bertkit search`."""

    prompt: str | None = Field(
        default=None,
        description="Text to prepend to each query; an empty text for none. By default the model's"
        " prompt named query.",
    )
    prompt_name: str | None = Field(
        default=None, description="Name of the model's prompt to prepend to each query."
    )
    passage_prompt: str | None = Field(
        default=None,
        description="Text to prepend to each text of the corpus; an empty text for none. By default"
        " the model's prompt named document, passage or corpus.",
    )
    similarity: Similarity | None = Field(
        default=None,
        description="Similarity measure; by default that of the model's folder, else cosine."
        " Distances are negated: higher is always more similar.",
    )
    index: Literal["auto", "exact", "approximate"] = Field(
        default="auto",
        description="Compare each query with all vectors (exact), or only with those of the nearest"
        " clusters (approximate, needs faiss). auto is exact up to a million vectors.",
    )
    overwrite: bool = Field(default=False, description="Replace an existing output.")


class EmbedSettings(CorpusSettings, EmbedderSettings):
    """Settings of `bertkit embed`."""

    overwrite: bool = Field(default=False, description="Replace an existing output.")


class FeaturesSettings(TableSettings, FeatureSettings, EngineSettings):
    """Settings of `bertkit features`."""

    pairs: bool = Field(
        default=False,
        description="Read `one ||| other` as a text pair, split at the last ` ||| ` of the row, as"
        " google-research/bert does. Otherwise ` ||| ` is part of the text.",
    )
    layout: Literal["bertkit", "google"] = Field(
        default="bertkit",
        description="JSONL keys: those of bertkit, or linex_index, features, layers and values"
        " as in extract_features.py of google-research/bert, for --combine none.",
    )
    overwrite: bool = Field(default=False, description="Replace an existing output.")

    @model_validator(mode="after")
    def _google_needs_separate_layers(self) -> Self:
        if self.layout == "google" and self.combine != "none":
            raise ValueError(f"layout google needs combine none, and combine is {self.combine}")
        return self
