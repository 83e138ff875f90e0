"""POST to the server's or a model's own address: what the model does decides.

So it is with huggingface_hub's InferenceClient, whose requests have `parameters`, and with
text-embeddings-inference. Answers have the Hub's forms.
"""

from collections import ChainMap
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from pydantic import JsonValue, ValidationError

from bertkit.base.settings import Settings, describe_validation
from bertkit.base.wings import SERVER_HUB_FORMS, list_installed, load_object
from bertkit.inference.fill_mask import FilledText
from bertkit.inference.settings import FillOptions
from bertkit.serving.endpoint import Endpoint, RequestContext
from bertkit.serving.errors import Reason
from bertkit.serving.routes.requests import (
    AnswerParameters,
    AnswerRequest,
    AnyBody,
    Body,
    ClassifyRequest,
    EmbedBody,
    FillRequest,
    HubRequest,
    PredictBody,
    RerankBody,
    SimilarityBody,
    TagParameters,
    TagRequest,
)
from bertkit.serving.routes.tei import (
    LabelScore,
    compare,
    embed_inputs,
    predict,
    rerank,
    score_labels,
)
from bertkit.tasks.answer.scoring import Answer
from bertkit.tasks.tag.decoding import Tagging

AnyRequest = TypeVar("AnyRequest", bound=Body)
AnswerForm = Callable[[RequestContext, str, Mapping[str, JsonValue]], Awaitable[Any]]
INVOCATIONS = "/invocations"  # a route that text-embeddings-inference has for SageMaker
# Keys of text-embeddings-inference; who sends one expects its answer.
OF_PREDICT = PredictBody.model_fields.keys() - {"inputs"}


async def infer(call: RequestContext, body: AnyBody) -> Any:
    """Do what the model is for."""
    given = body.root
    task, _ = call.find().usual
    if task == "embed":
        is_comparison = isinstance(given.get("inputs"), Mapping)
        return await (
            compare(call, read(SimilarityBody, given))
            if is_comparison
            else embed_inputs(call, read(EmbedBody, given))
        )
    if task in {"regress", "rerank"} and "query" in given:
        return await rerank(call, read(RerankBody, given))
    if task in {"classify", "regress", "rerank"}:
        is_of_tei = call.route == INVOCATIONS or not OF_PREDICT.isdisjoint(given)
        if is_of_tei and "parameters" not in given:
            return await predict(call, read(PredictBody, given))
        return await classify(call, read(ClassifyRequest, given))
    if task not in load_forms():
        raise Reason.UNREADABLE.error(
            f"{call.model} is for the task {task}; POST to /v1/models/{call.model}/{task}"
        )
    return await load_forms()[task](call, task, given)


def read(kind: type[AnyRequest], given: Mapping[str, JsonValue]) -> AnyRequest:
    """Return a body of a kind."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise Reason.UNREADABLE.error(describe_validation(error, kind, shows_input=False)) from None


async def classify(call: RequestContext, body: ClassifyRequest) -> list[list[LabelScore]]:
    """Return the labels of each text with their scores, the highest first; a list for one, too."""
    task, pipeline = call.find().usual
    function, has_sigmoid = body.parameters.function_to_apply, task != "classify"
    usual = default = "sigmoid" if has_sigmoid or pipeline.task.settings.multi_label else "softmax"
    if call.find().opened.config.problem_type == "regression":
        default = "none"  # as in transformers; a reranker's config doesn't say regression
    if function not in {None, "none", usual}:
        raise Reason.UNREADABLE.error(
            f"function_to_apply is {function}, and {call.model} takes {usual} or none"
        )
    is_raw = (function or default) == "none"
    found = await score_labels(call, body.list_inputs(), is_raw=is_raw)
    return [rows[: body.parameters.top_k] for rows in found]


Result = TypeVar("Result")
Parameters = TypeVar("Parameters")


@dataclass(frozen=True)
class HubForm(Generic[Result, Parameters]):
    """How the Hub writes a task.

    Attributes:
        body: the class of requests.
        shape: turns a result into what stands in the answer, by the request's parameters.
        choose: the pipeline's options of a request's parameters.
        is_listed: whether the answer to one input is a list, too.
    """

    body: type[HubRequest[Any, Parameters]]
    shape: Callable[[Result, Parameters], JsonValue]
    choose: Callable[[Parameters], Settings | None] = lambda _: None
    is_listed: bool = False

    async def answer(
        self, call: RequestContext, task: str, given: Mapping[str, JsonValue]
    ) -> JsonValue:
        """Return the answer to a request."""
        body = read(self.body, given)
        found = await call.compute(task, body.list_inputs(), self.choose(body.parameters))
        shaped = [self.shape(one, body.parameters) for one in found]
        return shaped if self.is_listed else body.shape(shaped)


def shape_blanks(filled: FilledText, _: FillOptions) -> list[JsonValue]:
    """Return the candidates of a [MASK], or of each of several."""
    mask = filled.mask
    first, *others = filled.text.split(mask)
    blanks: list[list[JsonValue]] = []
    for place, candidates in enumerate(filled.blanks):
        before, after = mask.join([first, *others[:place]]), mask.join(others[place:])
        blanks.append(
            [
                {
                    "score": one.probability,
                    "token": one.token_id,
                    "token_str": one.token,
                    "sequence": before + one.token.removeprefix("##") + after,
                }
                for one in candidates
            ]
        )
    return [*blanks] if len(blanks) > 1 else blanks[0]


def shape_tags(tagging: Tagging, parameters: TagParameters) -> list[JsonValue]:
    """Return entities; or each word with its tag, if they aren't wanted or the model has none."""
    is_grouped = parameters.aggregation_strategy != "none"
    are_joined = bool(tagging.entities) and is_grouped
    found: Sequence[Any] = tagging.entities if are_joined else tagging.words
    key, name = "entity_group" if is_grouped else "entity", "type" if are_joined else "tag"
    return [
        {
            key: getattr(one, name),
            "score": one.probability,
            "word": one.text,
            "start": one.start,
            "end": one.stop,
        }
        for one in found
        if getattr(one, name) not in parameters.ignore_labels
    ]


def shape_answer(answer: Answer, parameters: AnswerParameters) -> JsonValue:
    """Return the best candidate, or with top_k a list of the best; no answer is empty."""
    may_be_null = parameters.handle_impossible_answer
    wants_null = answer.is_null and (may_be_null is None or answer.best is None)
    best: list[JsonValue] = [
        {
            "answer": one.text,
            "score": one.probability,
            "start": one.start or 0,
            "end": one.stop or 0,
        }
        for one in answer.n_best
        if may_be_null or (one.start is None) == wants_null
    ]
    return best[: parameters.top_k] if parameters.top_k > 1 else best[0]


FORMS: dict[str, AnswerForm] = {
    "fill-mask": HubForm(FillRequest, shape_blanks, lambda given: given).answer,
    "tag": HubForm(TagRequest, shape_tags).answer,
    "answer": HubForm(AnswerRequest, shape_answer).answer,
}


@cache
def load_forms() -> Mapping[str, AnswerForm]:
    """Return how requests of each task are answered, those of other wings included."""
    others = map(load_object, list_installed(SERVER_HUB_FORMS).values())
    return dict(ChainMap(FORMS, *others))


ENDPOINTS = tuple(
    Endpoint(path, infer, "tei")
    for path in (INVOCATIONS, "/")  # the second is the pattern of all others of a model
)
