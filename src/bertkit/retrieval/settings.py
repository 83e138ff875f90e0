"""Settings of search, embedding and feature extraction."""

from typing import Annotated, Literal, Self

from cyclopts import Parameter
from pydantic import Field, model_validator

from bertkit.base.settings import NO_FLAG, Count, Settings
from bertkit.data.tables.settings import CorpusSettings
from bertkit.inference.embeddings.settings import (
    EmbedderSettings,
    FeatureSettings,
    SimilaritySettings,
)
from bertkit.inference.settings import EngineSettings
from bertkit.tasks.settings import TOP_K

By = Literal["words", "vectors", "both"]


class PassageSettings(Settings):
    """How a long text is cut into passages."""

    passage_tokens: Annotated[Count | None, NO_FLAG] = Field(
        default=None,
        description="Maximum tokens of a passage, without special tokens; by default what the model"
        " reads.",
    )
    passage_overlap: Annotated[float, Field(ge=0.0, le=0.5), NO_FLAG] = Field(
        default=0.125, description="Share of a passage that the next one repeats, at most."
    )


class IndexSettings(CorpusSettings, SimilaritySettings, PassageSettings):
    """How an index reads, cuts and embeds texts; those of an existing index are kept."""

    passage_prompt: str | None = Field(
        default=None,
        description="Text to prepend to each passage; an empty text for none. By default the"
        " model's prompt named document, passage or corpus.",
    )


class QuerySettings(Settings):
    """What a search of an index returns."""

    top_k: int = Field(default=5, ge=1, description=TOP_K)
    by: By = Field(
        default="both",
        description="Find texts by the words of the query, by vectors, or by both, joined by"
        " reciprocal rank fusion.",
    )
    where: Annotated[str | dict[str, object] | None, NO_FLAG] = Field(
        default=None,
        description="Only documents whose fields pass, such as \"lang = 'de' and year >= 2020\";"
        " =, !=, <, <=, >, >=, in, like, and, or, not and parentheses.",
    )
    rerank: str | None = Field(
        default=None,
        description="Model of pairs of texts that orders the best candidates anew: a folder, a run,"
        " or the id of a model of the Hub.",
    )
    candidates: Count = Field(
        default=50, description="Number of results that --rerank orders, or as many as --top-k."
    )
    by_document: Annotated[bool, Parameter(negative="")] = Field(
        default=False, description="Return each document once, with its best passage."
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
