"""Settings of text embedding; the defaults come from the model's folder."""

from typing import Annotated, Literal

from cyclopts import Parameter
from pydantic import Field

from bertkit.base.settings import Settings
from bertkit.inference.engines.names import EngineName, Precision

PoolingName = Literal[
    "cls",
    "mean",
    "max",
    "mean_sqrt_len_tokens",
    "weightedmean",
    "lasttoken",
    "first_last_mean",
    "last_four_concat",
    "last_four_sum",
]
LEAST_TOKENS = 3  # [CLS], a word, [SEP]


class EmbedderSettings(Settings):
    """How texts become vectors."""

    pooling: Annotated[tuple[PoolingName, ...] | None, Parameter(negative="")] = Field(
        None,
        description="What makes one vector of the tokens' vectors; several are joined. By default"
        " what a sentence-transformers folder says, else mean. A choice leaves out the dense layers"
        " that such a folder puts behind its own pooling.",
    )
    normalize: bool | None = Field(
        None,
        description="Scale each vector to length 1 at the end, or never; by default where the"
        " model's folder says so.",
    )
    dimensions: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Keep only the first features of each vector; --normalize comes after."
    )
    prompt: str | None = Field(
        None, description="Put this before each text, as it stands; the empty text for nothing."
    )
    prompt_name: str | None = Field(
        None, description="Put the model's prompt of this name before each text, such as query."
    )
    max_length: Annotated[int, Field(ge=LEAST_TOKENS)] | None = Field(
        None,
        description="Most tokens of a text, with [CLS] and [SEP]; by default as many as the"
        " model's folder says.",
    )
    long_texts: Literal["truncate", "window"] = Field(
        "truncate",
        description="What becomes of longer texts: truncate cuts them, window reads them in"
        " overlapping parts, whose vectors are averaged by their number of tokens.",
    )
    stride: Annotated[int, Field(ge=1)] | None = Field(
        None,
        description="Tokens from the beginning of one part to that of the next, for --long-texts"
        " window; by default half of what a part holds.",
    )
    deterministic: bool = Field(
        False,
        description="Compute each text by itself, so that its vector is the same bit for bit"
        " whatever texts are around it; slower. Without it vectors agree within 1e-6.",
    )
    engine: EngineName = Field(
        "auto", description="The program that computes: auto takes the fastest that is installed."
    )
    precision: Precision = Field(
        "fp32", description="Numbers of the matrix products; bf16 is for GPUs."
    )
