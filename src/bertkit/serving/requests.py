"""What routes take, as pydantic models: they check requests, and the OpenAPI page shows them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_TOKEN_ID = 2**31 - 1
Ids = list[Annotated[int, Field(strict=True, ge=0, le=MAX_TOKEN_ID)]]
Text = Annotated[str, Field(strict=True)]
TextOrIds = Text | Ids
Input = TextOrIds | list[TextOrIds]


class Body(BaseModel):
    """Base of bodies that other servers define: unknown keys are left alone, as they do."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class OwnBody(BaseModel):
    """Base of bodies that only bertkit defines: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class EmbeddingsBody(Body):
    """A request of `/v1/embeddings`, as OpenAI defines it."""

    input: Input
    model: Text | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    user: Text | None = None
    prompt_name: Text | None = None
    truncate: bool | None = None


class TruncatingBody(Body):
    """What requests of text-embeddings-inference have in common."""

    truncate: bool | None = None
    truncation_direction: Literal["left", "right", "Left", "Right"] = "right"


class EmbedBody(TruncatingBody):
    """A request of `/embed`."""

    inputs: Input
    prompt_name: Text | None = None
    normalize: bool = True
    dimensions: int | None = None


class PredictBody(TruncatingBody):
    """A request of `/predict`: a text, a pair of texts, or a list of lists of one or two."""

    inputs: (
        Text
        | Annotated[list[Text], Field(min_length=1, max_length=2)]
        | Annotated[
            list[Annotated[list[Text], Field(min_length=1, max_length=2)]], Field(min_length=1)
        ]
    )
    raw_scores: bool = False


class RerankBody(TruncatingBody):
    """A request of `/rerank`."""

    query: Text
    texts: list[Text]
    raw_scores: bool = False
    return_text: bool = False


class SimilarityInputs(Body):
    """A sentence and those that it is compared with."""

    source_sentence: Text
    sentences: list[Text]


class SimilarityParameters(TruncatingBody):
    """How the sentences are embedded."""

    prompt_name: Text | None = None


class SimilarityBody(Body):
    """A request of `/similarity`."""

    inputs: SimilarityInputs
    parameters: SimilarityParameters | None = None


class TokenizeBody(Body):
    """A request of `/tokenize`."""

    inputs: Text | list[Text]
    add_special_tokens: bool = True
    prompt_name: Text | None = None


class DecodeBody(Body):
    """A request of `/decode`."""

    ids: Ids | list[Ids]
    skip_special_tokens: bool = True


class RankedDocument(Body):
    """A document with its text."""

    text: Text


class RerankingBody(Body):
    """A request of `/v1/rerank` or `/v2/rerank`, as Cohere and Jina define it."""

    query: Text
    documents: list[Text | RankedDocument]
    model: Text | None = None
    top_n: Annotated[int, Field(ge=1)] | None = None
    return_documents: bool | None = None


class TaskBody(OwnBody):
    """A request of bertkit's own routes: one input or several, and options of the pipeline."""

    inputs: Any
    truncate: bool | None = None
    options: dict[str, Any] = {}
