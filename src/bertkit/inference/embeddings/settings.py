"""Settings of vectors: of texts, of words and of hidden states; names of poolings, similarities."""

from typing import Annotated, Literal, get_args

from cyclopts import Parameter
from pydantic import Field

from bertkit.base.settings import NO_FLAG, Count, Settings
from bertkit.inference.settings import EngineSettings
from bertkit.tokenization.long_texts import LongTextSettings

Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)


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
LEAST_TOKENS = 3  # [CLS], a word, [SEP]; of a pair without a word, all three are special


class EmbedderSettings(LongTextSettings, EngineSettings):
    """How texts become vectors, and what they are computed on; the defaults are the model's."""

    pooling: Annotated[tuple[PoolingName, ...] | None, Parameter(negative="")] = Field(
        default=None,
        description="How token vectors become one vector; the results of several are concatenated."
        " By default as a sentence-transformers folder specifies, else mean. Setting it drops the"
        " dense layers that such a folder applies after its own pooling.",
    )
    normalize: bool | None = Field(
        default=None,
        description="Scale each vector to length 1 at the end, or never; by default as the"
        " model's folder specifies.",
    )
    dimensions: Count | None = Field(
        default=None,
        description="Keep only this many leading features of each vector; --normalize applies"
        " afterwards.",
    )
    prompt: str | None = Field(
        default=None,
        description="Text prepended to each text, of search to each query, exactly as given; an"
        " empty text disables the model's default prompt.",
    )
    prompt_name: str | None = Field(
        default=None,
        description="Name of the model's prompt to prepend instead, such as query.",
    )
    max_length: Annotated[int, Field(ge=LEAST_TOKENS)] | None = Field(
        default=None,
        description="Maximum tokens of a text or window, with special tokens; by default what the"
        " model's folder specifies.",
    )
    deterministic: bool = Field(
        default=False,
        description="Compute each text alone, so that its result doesn't depend on the other texts,"
        " bit for bit; slower.",
    )


class SimilaritySettings(EmbedderSettings):
    """How texts become vectors, and how these are compared."""

    similarity: Similarity | None = Field(
        default=None,
        description="Similarity measure; by default that of the model's folder, else cosine."
        " Distances are negated: higher is always more similar.",
    )


class EmbedOptions(Settings):
    """What a call changes of a loaded embedder; None leaves it as it is."""

    prompt_name: str | None = Field(default=None, description="Name of the model's prompt.")
    dimensions: Count | None = Field(
        default=None, description="Keep only this many leading features."
    )
    normalize: bool | None = Field(
        default=None, description="Scale each vector to length 1 at the end, or never."
    )
    keeps_end: bool = Field(
        default=False, description="Cut off the start of a long text instead of its end."
    )
    by_token: bool = Field(
        default=False,
        description="Return the last hidden states of each text's tokens, [tokens, hidden]; no text"
        " is divided into parts.",
    )


class WordVectorSettings(EngineSettings):
    """Which vectors of a vocabulary are compared; an engine computes those of layers above 0."""

    layer: int = Field(
        default=0,
        description="Layer: 0 is the embeddings (of words alone), 1 the first block, -1 the last.",
    )
    all_entries: Annotated[bool, NO_FLAG] = Field(
        default=False,
        description="List pieces (##), special and unused entries, too, not only whole words.",
    )


class FeatureSettings(Settings):
    """Which hidden states become features; the defaults are the BERT paper's best setting."""

    layers: tuple[int, ...] | None = Field(
        default=None,
        description="Layers to extract, in this order: 0 is the output of the embeddings, 1 the"
        " first block, -1 the last. By default the last four, the last first.",
    )
    combine: Literal["concat", "sum", "mean", "none"] = Field(
        default="concat",
        description="How several layers are combined: concat concatenates them, sum adds them, mean"
        " averages them, none keeps them separate.",
    )
    max_length: Annotated[int, Field(ge=LEAST_TOKENS)] | None = Field(
        default=None,
        description="Maximum tokens of a text or pair, with special tokens; longer ones are"
        " truncated. By default the model's maximum.",
    )
