"""What routes take, as pydantic models: they check requests, and the OpenAPI page shows them."""

from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    RootModel,
    model_validator,
)
from pydantic_core import CoreSchema

from bertkit.base.settings import Count
from bertkit.inference.settings import FillOptions

MAX_TOKEN_ID = 2**31 - 1


class NotEmpty:
    """Says in the description of a list that it isn't empty.

    Routes refuse an empty one themselves: text-embeddings-inference has a status of its own for it.
    """

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the description of the list."""
        return {**handler(schema), "minItems": 1}


QUICKLY = Field(fail_fast=True)  # else a list of a million wrong values has a million errors
Id = Annotated[int, Field(strict=True, ge=0, le=MAX_TOKEN_ID)]
Ids = Annotated[list[Id], QUICKLY, NotEmpty]
Text = Annotated[str, Field(strict=True)]
Texts = Annotated[list[Text], QUICKLY]
SomeTexts = Annotated[list[Text], QUICKLY, NotEmpty]
Pair = Annotated[list[Text], Field(min_length=2, max_length=2)]
ListedPair = Annotated[list[Text], Field(min_length=1, max_length=2)]
OneOrTwo = Text | ListedPair
TextOrIds = Text | Ids
Input = TextOrIds | Annotated[list[TextOrIds], QUICKLY, NotEmpty]


class Body(BaseModel):
    """Base of bodies that other servers define: unknown keys are left alone, as they do."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False, strict=True)


class OwnBody(Body, extra="forbid"):
    """Base of bodies that only bertkit defines: an unknown key is an error."""


One = TypeVar("One")
Parameters = TypeVar("Parameters")


class InputsBody(Body, Generic[One]):
    """Base of bodies with one input or several."""

    inputs: One | Annotated[list[One], Field(min_length=1, fail_fast=True)]

    def list_inputs(self) -> list[Any]:
        """Return one input, or several, as pipelines take them: a list among them is a pair."""
        given = self.inputs if isinstance(self.inputs, list) else [self.inputs]
        return [
            tuple(one) if isinstance(one, list) else dict(one) if isinstance(one, Body) else one
            for one in given
        ]

    def shape(self, results: list[Any]) -> Any:
        """Return the results of several inputs, or the one of one."""
        return results if isinstance(self.inputs, list) else results[0]


class TruncatingBody(Body):
    """What requests of text-embeddings-inference have in common."""

    truncate: bool | None = None
    truncation_direction: Literal["right", "Right"] = "right"


class EmbedParameters(TruncatingBody):
    """How texts are embedded; of a long one also the start can be cut off."""

    truncation_direction: Literal["left", "right", "Left", "Right"] = "right"  # type: ignore[assignment]
    prompt_name: Text | None = None


class EmbeddingsBody(EmbedParameters):
    """A request of `/v1/embeddings`, as OpenAI defines it."""

    input: Input
    model: Text | None = None
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: Count | None = None
    user: Text | None = None


class EmbedTokensBody(EmbedParameters):
    """A request of `/embed_all`."""

    inputs: Input


class EmbedBody(EmbedTokensBody):
    """A request of `/embed`."""

    normalize: bool = True
    dimensions: Count | None = None


class PredictBody(TruncatingBody):
    """A request of `/predict`: a text, a pair of texts, or a list of lists of one or two."""

    inputs: OneOrTwo | Annotated[list[ListedPair], Field(min_length=1, fail_fast=True)]
    raw_scores: bool = False


class RerankBody(TruncatingBody):
    """A request of `/rerank`."""

    query: Text
    texts: SomeTexts
    raw_scores: bool = False
    return_text: bool = False


class SimilarityInputs(Body):
    """A sentence and those that it is compared with."""

    source_sentence: Text
    sentences: SomeTexts


class SimilarityBody(Body):
    """A request of `/similarity`."""

    inputs: SimilarityInputs
    parameters: EmbedParameters | None = None


class TokenizeBody(Body):
    """A request of `/tokenize`."""

    inputs: Text | SomeTexts
    add_special_tokens: bool = True
    prompt_name: Text | None = None


class DecodeBody(Body):
    """A request of `/decode`."""

    ids: Ids | Annotated[list[Ids], QUICKLY, NotEmpty]
    skip_special_tokens: bool = True


class RankedDocument(Body):
    """A document with its text."""

    text: Text


class RerankingBody(Body):
    """A request of `/v1/rerank` or `/v2/rerank`, as Cohere and Jina define it."""

    query: Text
    documents: Annotated[list[Text | RankedDocument], QUICKLY, NotEmpty]
    model: Text | None = None
    top_n: Count | None = None
    return_documents: bool | None = None


class AnyBody(RootModel[dict[str, JsonValue]]):
    """A request whose content depends on what the model does."""


class HubRequest(InputsBody[One], Generic[One, Parameters]):
    """A request of huggingface_hub's InferenceClient: one input or several, and parameters."""

    parameters: Parameters = Field(default_factory=dict, validate_default=True)
    stream: Literal[False] = False


class ClassifyParameters(OwnBody):
    """Which scores of a text's labels are wanted."""

    function_to_apply: Literal["softmax", "sigmoid", "none"] | None = None
    top_k: Count | None = None


class TagParameters(OwnBody):
    """What is wanted of a text's tags: entities, or words."""

    aggregation_strategy: Literal["none", "simple", "first", "average", "max"] = "simple"
    ignore_labels: Texts = ["O"]
    stride: Count | None = None

    @model_validator(mode="after")
    def _has_a_meaning(self) -> Self:
        if self.aggregation_strategy in {"average", "max"}:
            raise ValueError(
                f"aggregation_strategy {self.aggregation_strategy} isn't supported; use none,"
                " simple or first"
            )
        if self.stride is not None:
            raise ValueError("stride isn't supported")
        return self


class Question(Body):
    """A question, and the text that may have its answer."""

    question: Text
    context: Text


class Choices(Body):
    """A beginning, perhaps with a question, and its endings."""

    context: Text
    choices: SomeTexts
    question: Text | None = None


class AnswerParameters(OwnBody):
    """How many answers are wanted, and whether there may be none; None as the model says."""

    top_k: Count = 1
    handle_impossible_answer: bool | None = None


class PairedText(Body):
    """A text, and perhaps a second one, as transformers' pipelines take them."""

    text: Text
    text_pair: Text | None = None


class ClassifyRequest(HubRequest[OneOrTwo | PairedText, ClassifyParameters]):
    """A request to classify texts or pairs of texts."""

    def list_inputs(self) -> list[Any]:
        """Return texts and pairs as a pipeline takes them."""
        rows = [one.values() if isinstance(one, dict) else one for one in super().list_inputs()]
        return [one if isinstance(one, str) else take_pair(*one) for one in rows]


def take_pair(text: str, pair: str | None = None) -> str | tuple[str, str]:
    """Return a text, or a pair of texts, as a pipeline takes it."""
    return text if pair is None else (text, pair)


FillRequest = HubRequest[Text, FillOptions]
TagRequest = HubRequest[Text, TagParameters]
AnswerRequest = HubRequest[Question, AnswerParameters]


class TaskBody(InputsBody[One], Generic[One, Parameters], extra="forbid"):
    """A request of bertkit's own routes: one input or several, and options of the pipeline."""

    truncate: bool | None = None
    options: Parameters = Field(default_factory=dict, validate_default=True)
