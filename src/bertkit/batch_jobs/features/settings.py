"""Settings for extracting features."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bertkit.data.tables.settings import TableSettings
from bertkit.embeddings.settings import FeatureSettings


class FeaturesSettings(TableSettings, FeatureSettings):
    """Settings of `bertkit features`."""

    pairs: bool = Field(
        False,
        description="Read `one ||| other` as a text pair, split at the last ` ||| ` of the row, as"
        " google-research/bert does. Otherwise ` ||| ` is part of the text.",
    )
    layout: Literal["bertkit", "google"] = Field(
        "bertkit",
        description="JSONL keys: those of bertkit, or linex_index, features, layers and values"
        " as in extract_features.py of google-research/bert, for --combine none.",
    )
    overwrite: bool = Field(False, description="Replace an existing output.")

    @model_validator(mode="after")
    def _google_needs_separate_layers(self) -> Self:
        if self.layout == "google" and self.combine != "none":
            raise ValueError(f"layout google needs combine none, and combine is {self.combine}")
        return self
