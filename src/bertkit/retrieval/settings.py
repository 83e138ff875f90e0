"""Settings of search, embedding and feature extraction."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertkit.base.settings import Settings
from bertkit.data.tables.settings import CorpusSettings
from bertkit.inference.embeddings.settings import (
    EmbedderSettings,
    FeatureSettings,
    SimilaritySettings,
)
from bertkit.inference.settings import EngineSettings
from bertkit.tasks.settings import TOP_K


class SearchSettings(CorpusSettings, SimilaritySettings):
    """Settings of `bertkit search`."""

    passage_prompt: str | None = Field(
        default=None,
        description="Text to prepend to each text of the corpus; an empty text for none. By default"
        " the model's prompt named document, passage or corpus.",
    )
    index: Literal["auto", "exact", "approximate"] = Field(
        default="auto",
        description="Compare each query with all vectors (exact), or only with those of the nearest"
        " clusters (approximate, needs faiss). auto is exact up to a million vectors.",
    )
    overwrite: bool = Field(default=False, description="Replace an existing output.")


class ResultSettings(Settings):
    """What a search returns, and where it keeps its index."""

    top_k: int = Field(default=5, ge=1, description=TOP_K)
    index_folder: Path | None = Field(
        default=None,
        description="Folder of the index; by default beside the corpus, or in the common folder of"
        " several files.",
    )


class EmbedSettings(CorpusSettings, EmbedderSettings):
    """Settings of `bertkit embed`."""

    overwrite: bool = Field(default=False, description="Replace an existing output.")


class FeaturesSettings(CorpusSettings, FeatureSettings, EngineSettings):
    """Settings of `bertkit features`."""

    pair_separator: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="Split each text into a pair at the last such separator, as ' ||| ' in files of"
        " google-research/bert; a text without it is a single one.",
    )
    output_format: Literal["jsonl", "parquet", "google"] | None = Field(
        default=None,
        description="Where --output is a folder: extension of its files, jsonl or parquet (the"
        " default). google, for --combine none: JSONL with the keys of google-research/bert's"
        " extract_features.py, also into a single file or without --output.",
    )
    overwrite: bool = Field(default=False, description="Replace an existing output.")

    @model_validator(mode="after")
    def _google_has_layers_and_no_ids(self) -> Self:
        if self.output_format == "google" and self.combine != "none":
            raise ValueError(f"`output_format` google needs `combine` none, got {self.combine}")
        if self.output_format == "google" and self.id_column is not None:
            raise ValueError("`output_format` google has no room for ids; omit `id_column`")
        return self
