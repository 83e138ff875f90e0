"""Settings of feature extraction; the defaults are the best setting in the BERT paper."""

from typing import Annotated, Literal

from pydantic import Field

from bertkit.base.settings import Settings
from bertkit.inference.engines.names import EngineName

LEAST_TOKENS = 3  # [CLS], a word, [SEP]; of a pair without a word, all three are special


class FeatureSettings(Settings):
    """Which hidden states become features, and how."""

    layers: tuple[int, ...] | None = Field(
        None,
        description="Layers, in this order: -1 is the last block, 1 the first, 0 what the"
        " embeddings give. By default the last four, the last first.",
    )
    combine: Literal["concat", "sum", "mean", "none"] = Field(
        "concat",
        description="What becomes of several layers: concat joins them, sum adds them, mean"
        " averages them, none gives each by itself.",
    )
    max_length: Annotated[int, Field(ge=LEAST_TOKENS)] | None = Field(
        None,
        description="Most tokens of a text, with [CLS] and [SEP]; longer ones are cut. By default"
        " as many as the model takes.",
    )
    engine: EngineName = Field(
        "auto", description="The program that computes: auto takes the fastest that is installed."
    )
