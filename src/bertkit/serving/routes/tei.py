"""Routes of text-embeddings-inference, with its field names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, cast

import numpy as np
from starlette.responses import PlainTextResponse, Response

from bertkit._version import __version__
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.reranker import find_value
from bertkit.serving.endpoint import Endpoint, RequestContext
from bertkit.serving.errors import Reason
from bertkit.serving.routes.openai import embed, list_inputs, rank
from bertkit.serving.routes.requests import (
    DecodeBody,
    EmbedBody,
    EmbedParameters,
    EmbedTokensBody,
    PredictBody,
    RerankBody,
    SimilarityBody,
    TokenizeBody,
    take_pair,
)
from bertkit.serving.service import ReadyModel
from bertkit.serving.sharing.fair_queue import ModelInput
from bertkit.tasks.classify.decoding import sigmoid
from bertkit.tokenization.tokenizer import Tokenizer

DTYPES = {"fp32": "float32", "bf16": "bfloat16", "int8": "int8"}
OPEN_METRICS = "application/openmetrics-text"
QUALITY = re.compile(r"q=[01](\.[0-9]{0,3})?")
MAX_TOKEN_TEXTS = 32  # of a request, since a vector of each token is a long answer


@dataclass(frozen=True)
class LabelScore:
    """A label and its score."""

    score: float
    label: str


@dataclass(frozen=True)
class RankedText:
    """The number of a text and its score."""

    index: int
    score: float


@dataclass(frozen=True)
class ReturnedText(RankedText):
    """A ranked text that was asked for."""

    text: str


@dataclass(frozen=True)
class ListedToken:
    """A token, and its bytes in the text; a special one has none."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


@dataclass(frozen=True)
class ServerInfo:
    """The answer of `/info`: a model and the limits of its server.

    Attributes:
        model_type: what the model does, with its pooling or its labels.
    """

    model_id: str
    model_sha: str | None
    model_dtype: str
    served_model_name: str
    model_type: dict[str, dict[str, str | dict[str, str] | dict[str, int]]]
    max_concurrent_requests: int
    max_input_length: int
    max_batch_tokens: int
    max_batch_requests: int | None
    max_client_batch_size: int
    auto_truncate: bool
    tokenization_workers: int = 1
    version: str = __version__
    sha: str | None = None
    docker_label: str | None = None


async def embed_inputs(call: RequestContext, body: EmbedBody) -> list[list[float]]:
    """Embed texts."""
    texts, dimensions = list_texts(body), body.dimensions
    return await embed(call, texts, body, normalize=body.normalize, dimensions=dimensions)


async def embed_tokens(call: RequestContext, body: EmbedTokensBody) -> list[list[list[float]]]:
    """Embed tokens."""
    inputs = list_texts(body)
    if len(inputs) > MAX_TOKEN_TEXTS:
        raise Reason.UNREADABLE.error(
            f"the request has {len(inputs):,} inputs, and vectors of tokens are given of"
            f" {MAX_TOKEN_TEXTS} at most; divide it"
        )
    return await embed(call, inputs, body, by_token=True)


def list_texts(body: EmbedTokensBody) -> list[str | list[int]]:
    """Return the inputs of a request; there are some, and none is empty."""
    inputs = list_inputs(body.inputs)
    refuse_empty(inputs)
    return inputs


def refuse_empty(inputs: Sequence[ModelInput]) -> None:
    """Refuse inputs of which one is empty, or both texts of a pair."""
    if not all(any(one) if isinstance(one, tuple) else one for one in inputs):
        raise Reason.EMPTY.error("an input is empty; each needs a word")


async def predict(
    call: RequestContext, body: PredictBody
) -> list[LabelScore] | list[list[LabelScore]]:
    """Classify texts, or pairs of texts."""
    given = body.inputs
    is_one = isinstance(given, str) or isinstance(given[0], str)
    parts: Any = [[given] if isinstance(given, str) else given] if is_one else given
    inputs = [take_pair(*one) for one in parts]
    refuse_empty(inputs)
    found = await score_labels(call, inputs, is_raw=body.raw_scores, truncate=body.truncate)
    return found[0] if is_one else found


async def score_labels(
    call: RequestContext,
    inputs: Sequence[ModelInput],
    *,
    is_raw: bool,
    truncate: bool | None = None,
) -> list[list[LabelScore]]:
    """Return the labels of each input with their scores, the highest first.

    With `is_raw` a score is what the model computes, before the sigmoid or softmax.
    """
    loaded = call.find("classify", "regress", "rerank")
    for task in loaded.pipelines.keys() & {"regress", "rerank"}:
        labels = loaded.opened.config.labels
        found = await call.compute(task, inputs, truncate=truncate)
        values = map(find_value, found)
        scores = [value if is_raw else sigmoid(value) for value in values]
        return [[LabelScore(score, label) for label in labels] for score in scores]
    found = await call.compute("classify", inputs, truncate=truncate)
    return [
        [LabelScore(logit if is_raw else share, label) for label, share, logit in one.ranking]
        for one in found
    ]


async def rerank(call: RequestContext, body: RerankBody) -> list[ReturnedText] | list[RankedText]:
    """Order texts by a query."""
    texts, is_raw = body.texts, body.raw_scores
    ranked = await rank(call, body.query, texts, is_raw=is_raw, truncate=body.truncate)
    if body.return_text:
        return [ReturnedText(index, score, texts[index]) for index, score in ranked]
    return [RankedText(index, score) for index, score in ranked]


async def compare(call: RequestContext, body: SimilarityBody) -> list[float]:
    """Compare a sentence with others."""
    sentences = body.inputs.sentences
    if not sentences:
        raise Reason.EMPTY.error("there are no sentences; give at least one")
    texts = [body.inputs.source_sentence, *sentences]
    refuse_empty(texts)
    source, *others = await embed(call, texts, body.parameters or EmbedParameters())
    return cast("list[float]", np.stack(others) @ source)


async def tokenize(call: RequestContext, body: TokenizeBody) -> list[list[ListedToken]]:
    """Split texts into tokens."""
    loaded = call.find()
    prompt = "" if body.prompt_name is None else loaded.find_prompt(body.prompt_name)
    return await call.run(
        lambda text: list_tokens(
            loaded.opened.tokenizer, prompt + text, special=body.add_special_tokens
        ),
        list_inputs(body.inputs),
    )


async def decode(call: RequestContext, body: DecodeBody) -> list[str]:
    """Turn token ids into texts."""
    lists = list_inputs(body.ids)
    if not all(lists):
        raise Reason.EMPTY.error("there are no ids; give at least one")
    tokenizer = call.find().opened.tokenizer
    skip = body.skip_special_tokens
    return await call.run(partial(tokenizer.decode, skip_special_tokens=skip), lists)


async def inform(call: RequestContext, _: None) -> ServerInfo:
    """Describe the server."""
    settings = call.service.settings
    loaded = call.find()
    return ServerInfo(
        model_id=call.model,
        model_sha=settings.revision,
        model_dtype=DTYPES[loaded.precision],
        served_model_name=call.model,
        model_type=describe_type(loaded),
        max_concurrent_requests=settings.max_concurrent_requests,
        max_input_length=loaded.max_length,
        max_batch_tokens=loaded.batch_tokens,
        max_batch_requests=None,
        max_client_batch_size=settings.max_client_batch_size,
        auto_truncate=settings.auto_truncate,
    )


async def check_health(call: RequestContext, _: None) -> Response:
    """Whether the server is alive."""
    return PlainTextResponse()


async def check_ready(call: RequestContext, _: None) -> Response:
    """Whether all models are loaded."""
    if not call.service.is_ready:
        raise Reason.LOADING.error("models are being loaded, or the server is stopping")
    return PlainTextResponse()


async def show_metrics(call: RequestContext, _: None) -> Response:
    """Metrics for Prometheus, of all models; in OpenMetrics' form for who accepts that."""
    if call.named is not None:
        call.service.find(call.named)  # refuses a model that isn't there
    is_open = prefers(OPEN_METRICS, ("text/plain", "text/*", "*/*"), call.accepted)
    content = call.service.metrics.write(is_open=is_open)
    form = f"{OPEN_METRICS}; version=1.0.0" if is_open else "text/plain; version=0.0.4"
    return Response(content, media_type=f"{form}; charset=utf-8")


def prefers(kind: str, others: Sequence[str], accepted: str) -> bool:
    """Whether a client likes a media type better than the first of others that it accepts."""
    likings: dict[str, float] = {}
    for each in accepted.lower().split(","):
        name, *parameters = (part.strip() for part in each.split(";"))
        values = [part.removeprefix("q=") for part in parameters if QUALITY.fullmatch(part)]
        likings[name] = max(likings.get(name, 0), float(values[0]) if values else 1)
    return likings.get(kind, 0) > next((likings[one] for one in others if one in likings), 0)


def list_tokens(tokenizer: Tokenizer, text: str, *, special: bool) -> list[ListedToken]:
    """Return the tokens of a text; all but special ones have their bytes in the text's UTF-8."""
    encoding = tokenizer.encode_pieces(text)
    num_bytes = [0, *accumulate(len(one.encode("utf-8", "replace")) for one in text)]
    rows = [
        ListedToken(id_, text[start:stop], False, num_bytes[start], num_bytes[stop])
        for id_, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True)
    ]
    if not special:
        return rows
    first, last = (
        [ListedToken(id_, tokenizer.vocabulary[id_], True, None, None) for id_ in gap]
        for gap in tokenizer.template.single.gaps
    )
    return [*first, *rows, *last]


def describe_type(loaded: ReadyModel) -> dict[str, dict[str, Any]]:
    """Return what a model is, as text-embeddings-inference says it."""
    if isinstance(embedder := loaded.pipelines.get("embed"), Embedder):
        return {"embedding": {"pooling": "_".join(embedder.head.poolings)}}
    task, _ = loaded.usual
    kind = {"classify": "classifier", "regress": "reranker", "rerank": "reranker"}.get(task)
    if kind is None:
        return {task: {}}
    labels = list(enumerate(loaded.opened.config.labels))
    ids = {label: index for index, label in labels}
    return {kind: {"id2label": {str(index): label for index, label in labels}, "label2id": ids}}


PLAIN = ("text/plain",)

ENDPOINTS = (
    Endpoint("/embed", embed_inputs, "tei"),
    Endpoint("/embed_all", embed_tokens, "tei"),
    Endpoint("/predict", predict, "tei"),
    Endpoint("/rerank", rerank, "tei"),
    Endpoint("/similarity", compare, "tei"),
    Endpoint("/tokenize", tokenize, "tei"),
    Endpoint("/decode", decode, "tei"),
    Endpoint("/info", inform, "tei"),
    Endpoint("/health", check_health, "tei", media_types=PLAIN, is_open=True),
    Endpoint("/ping", check_health, "tei", media_types=PLAIN, is_open=True),
    Endpoint("/ready", check_ready, "tei", media_types=PLAIN, is_open=True),
    Endpoint("/metrics", show_metrics, "tei", media_types=(*PLAIN, OPEN_METRICS)),
)
