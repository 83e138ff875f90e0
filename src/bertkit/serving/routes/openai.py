"""Routes as OpenAI defines them, and `/v1/rerank` as Cohere and Jina do."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import JsonValue

from bertkit.inference.embeddings.settings import EmbedOptions
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.reranker import find_value
from bertkit.inference.stream import TextOrIds
from bertkit.serving.endpoint import Endpoint, RequestContext
from bertkit.serving.errors import Reason
from bertkit.serving.routes.requests import EmbeddingsBody, EmbedParameters, RerankingBody
from bertkit.serving.sharing.fair_queue import Results
from bertkit.tasks.classify.decoding import sigmoid


@dataclass(frozen=True)
class Usage:
    """Tokens that the model read."""

    prompt_tokens: int
    total_tokens: int


@dataclass(frozen=True)
class EmbeddedText:
    """A vector, as a list or as base64 of float32."""

    object: str
    index: int
    embedding: list[float] | str


@dataclass(frozen=True)
class EmbeddedTexts:
    """The answer of `/v1/embeddings`."""

    object: str
    data: list[EmbeddedText]
    model: str
    usage: Usage


@dataclass(frozen=True)
class ListedModel:
    """A model of the server."""

    id: str
    object: str
    created: int
    owned_by: str
    tasks: list[str]
    mask: str | None = None  # how a text has a blank; null if the model fills none


@dataclass(frozen=True)
class ListedModels:
    """The answer of `/v1/models`."""

    object: str
    data: list[ListedModel]


@dataclass(frozen=True)
class RankedDocuments:
    """The answer of `/v1/rerank`."""

    id: str
    model: str
    results: list[dict[str, JsonValue]]
    usage: Usage
    meta: dict[str, JsonValue]


async def create_embeddings(call: RequestContext, body: EmbeddingsBody) -> EmbeddedTexts:
    """Embed texts.

    Vectors have length 1, as OpenAI's; an empty text has one, too.
    """
    call.named = body.model
    vectors = await embed(call, list_inputs(body.input), body, dimensions=body.dimensions)
    if body.encoding_format == "base64":  # of float32, the lowest byte first
        packed = (np.ascontiguousarray(one, dtype="<f4").tobytes() for one in vectors)
        vectors = [base64.b64encode(one).decode() for one in packed]
    data = [EmbeddedText("embedding", index, one) for index, one in enumerate(vectors)]
    usage = Usage(call.num_tokens, call.num_tokens)
    return EmbeddedTexts("list", data, call.model, usage)


async def list_models(call: RequestContext, _: None) -> ListedModels:
    """List the models."""
    return ListedModels("list", [describe(call, name) for name in call.service.models])


async def get_model(call: RequestContext, _: None) -> ListedModel:
    """Describe a model."""
    call.find()
    return describe(call, call.model)


async def rerank_documents(call: RequestContext, body: RerankingBody) -> RankedDocuments:
    """Order documents by a query."""
    texts = [one if isinstance(one, str) else one.text for one in body.documents]
    call.named = body.model
    ranked = await rank(call, body.query, texts)
    results: list[dict[str, JsonValue]] = []
    for index, score in ranked[: body.top_n]:
        results.append({"index": index, "relevance_score": score})
        if body.return_documents:
            results[-1]["document"] = {"text": texts[index]}
    meta: dict[str, JsonValue] = {
        "api_version": {"version": "2"},
        "billed_units": {"search_units": 1},
    }
    usage = Usage(call.num_tokens, call.num_tokens)
    return RankedDocuments(call.identity, call.model, results, usage, meta)


def list_inputs(given: str | Sequence[Any]) -> list[Any]:
    """Return one text or list of token ids, or several, as a list; there is at least one."""
    if isinstance(given, str) or (given and isinstance(given[0], int)):
        return [given]
    if not given:
        raise Reason.EMPTY.error("the input is empty; give at least one text")
    return list(given)


async def embed(
    call: RequestContext,
    inputs: Sequence[TextOrIds],
    parameters: EmbedParameters,
    *,
    normalize: bool = True,
    dimensions: int | None = None,
    by_token: bool = False,
) -> Results:
    """Return a vector for each text or list of token ids.

    `by_token` gives the vectors of each text's tokens instead.
    """
    options = EmbedOptions(
        prompt_name=parameters.prompt_name,
        dimensions=dimensions,
        normalize=normalize,
        keeps_end=parameters.truncation_direction.lower() == "left",
        by_token=by_token,
    )
    return await call.compute("embed", inputs, options, truncate=parameters.truncate)


async def rank(
    call: RequestContext,
    query: str,
    texts: Sequence[str],
    *,
    is_raw: bool = False,
    truncate: bool | None = None,
) -> list[tuple[int, float]]:
    """Return the place and the score of each text for a query, best first.

    A score is between 0 and 1, or with `is_raw` the model's own number, which gives the order:
    sigmoids of numbers beyond 37 are all 1.
    """
    if not texts:
        raise Reason.EMPTY.error("there are no texts; give at least one")
    pairs = [(query, text) for text in texts]
    task = "rerank" if "rerank" in call.find("rerank", "regress").pipelines else "regress"
    found = await call.compute(task, pairs, truncate=truncate)
    values = list(map(find_value, found))
    order = sorted(range(len(values)), key=lambda index: -values[index])  # equal ones as they came
    return [(index, values[index] if is_raw else sigmoid(values[index])) for index in order]


def describe(call: RequestContext, name: str) -> ListedModel:
    """Return a model as OpenAI lists it, with its tasks."""
    loaded = call.service.models[name].loaded
    fill, tasks = loaded.pipelines.get("fill-mask"), list(loaded.pipelines)
    mask = fill.loaded.tokenizer.mask if isinstance(fill, FillMask) else None
    return ListedModel(name, "model", loaded.changed, "bertkit", tasks, mask)


ENDPOINTS = (
    Endpoint("/v1/embeddings", create_embeddings, "openai"),
    Endpoint("/embeddings", create_embeddings, "openai"),
    Endpoint("/v1/models", list_models, "openai"),
    Endpoint("/v1/models/{model}", get_model, "openai"),
    Endpoint("/v1/rerank", rerank_documents, "cohere"),
    Endpoint("/v2/rerank", rerank_documents, "cohere"),
)
