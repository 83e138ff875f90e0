"""bertkit's own routes: a pipeline's call and its JSON, for one input or several, and the page."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from starlette.responses import HTMLResponse, Response

from bertkit.base.errors import InputError
from bertkit.interpret.opening import choose_start
from bertkit.interpret.views.view import ViewInputs
from bertkit.reports.interactive import InteractivePage, page_modules, read_modules, read_styles
from bertkit.serving.errors import Reason
from bertkit.serving.models import ReadyModel
from bertkit.serving.routes.answers import Endpoint, TaskResults
from bertkit.serving.routes.requests import (
    AttentionBody,
    ChoicesBody,
    InputsBody,
    PairsBody,
    QuestionsBody,
    TaskBody,
    TextsBody,
    TextsOrPairsBody,
    WordsBody,
)
from bertkit.serving.service import RequestContext

RELOAD_SECONDS = 5  # that loading a model takes, about
MAX_TOKENS_WITH_ATTENTION = 256  # whose weights, in one layer of BERT-Large, are a million numbers

TASKS: Mapping[str, tuple[type[TaskBody[Any]], str]] = {
    "fill-mask": (TextsBody, "Predict the words for each [MASK]."),
    "next-sentence": (PairsBody, "Predict whether a text follows another."),
    "search": (TextsBody, "Find the texts of a corpus that are nearest in meaning."),
    "score": (TextsBody, "Score how likely texts are."),
    "classify": (TextsOrPairsBody, "Classify texts, or pairs of texts."),
    "regress": (TextsOrPairsBody, "Predict numbers."),
    "tag": (WordsBody, "Find entities, or other tags of words."),
    "answer": (QuestionsBody, "Answer questions with a part of a text."),
    "choose": (ChoicesBody, "Choose among endings."),
}


async def compute_task(call: RequestContext, body: TaskBody[Any]) -> TaskResults:
    """Return the results of a model's pipeline."""
    task = call.route.rpartition("/")[2]
    inputs = body.list_inputs()
    found = await call.compute(task, inputs, body.options, truncate=body.truncate)
    return answer(call, body, found)


async def show_attention(call: RequestContext, body: AttentionBody) -> TaskResults:
    """Show what tokens attend to."""
    loaded, layer = call.find(), body.options.layer
    if loaded.opened.is_encoder_decoder:
        raise Reason.UNREADABLE.error(f"{call.model} is an encoder-decoder; this needs a BERT")
    most = loaded.opened.config.num_hidden_layers
    if layer is not None and layer > most:
        raise Reason.UNREADABLE.error(f"layer is {layer}; {call.model} has layers 1 to {most}")
    found = await call.run(lambda one: attend(loaded, one, layer), body.list_inputs())
    return answer(call, body, found)


def attend(loaded: ReadyModel, text: str | tuple[str, str], layer: int | None) -> dict[str, Any]:
    """Return the tokens of a text or a pair, and the weights of each head of a layer.

    `start` is the head, from 1, and the token, from 0, of the most telling weight; each is null if
    there is none. Without a layer, it is that of this weight.
    """
    inspected = loaded.inspected
    first, second = (text, None) if isinstance(text, str) else text
    encoded = inspected.read(first, second, read_mask=True)
    if len(encoded.tokens) > MAX_TOKENS_WITH_ATTENTION:
        raise InputError(
            f"the text has {len(encoded.tokens)} tokens, and attention is shown of"
            f" {MAX_TOKENS_WITH_ATTENTION} at most; shorten it"
        )
    inputs = ViewInputs(inspected, inspected.observe(encoded))
    start = choose_start(inputs, layer)
    shown = start.layer or 1
    weights = inputs.observation.layers[shown - 1].weights.cpu().numpy()
    return {
        "tokens": encoded.tokens,
        "segments": encoded.encoding.token_type_ids,
        "layer": shown,
        "start": {"head": start.head, "token": start.token},
        "num_layers": inspected.model.config.num_hidden_layers,
        "weights": weights.round(5),
    }


def answer(call: RequestContext, body: InputsBody[Any], found: Sequence[Any]) -> TaskResults:
    """Return the results in the form of the request, with the model and its tokens."""
    rows = [one.to_json() if hasattr(one, "to_json") else one for one in found]
    usage = {"total_tokens": call.work.num_tokens if call.work else 0}
    return TaskResults(call.model, body.shape(rows), usage)


async def show_page(call: RequestContext, _: None) -> Response:
    """Try the models in a browser."""
    content, headers = build_page()
    return HTMLResponse(content, headers=headers)


@cache
def build_page() -> tuple[str, dict[str, str]]:
    """Build the page, with the heads of `bertkit view`, and return it with its headers."""
    own = resources.files("bertkit.serving").joinpath("page")
    views = resources.files("bertkit.interpret").joinpath("views")
    page = InteractivePage(
        title="Try the models of this server",
        modules={**page_modules(), **read_modules(views), **read_modules(own)},
        styles=[*read_styles(own).values(), read_styles(views)["heads.css"]],
        data=None,
        arrays={},
        asks_server=True,
    )
    headers = {
        "content-security-policy": f"{page.policy}; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
    }
    return page.render(), headers


async def reload_models(call: RequestContext, _: None) -> dict[str, list[str]]:
    """Load all models again from their folders."""
    names = list(call.service.models) if call.named is None else [call.named]
    call.find()  # refuses a model that isn't there, or isn't loaded yet
    task = call.service.reload_soon(*names, tells=True)
    if task is None:
        raise Reason.OVERLOAD.error("models are being loaded again already", RELOAD_SECONDS)
    if problems := await asyncio.shield(task):  # it goes on if the client leaves
        raise Reason.FAILED.error("; ".join(problems.values()))
    return {"loaded": names}


OF_MODEL = "/v1/models/{model}/"
RELOAD_ONE = "Load a model again from its folder."
ENDPOINTS = (
    Endpoint("/", show_page, "openai", media_types=("text/html",), is_open=True),
    *(
        Endpoint(OF_MODEL + task, compute_task, "openai", body, summary=summary)
        for task, (body, summary) in TASKS.items()
    ),
    Endpoint(OF_MODEL + "attention", show_attention, "openai"),
    Endpoint(OF_MODEL + "reload", reload_models, "openai", summary=RELOAD_ONE, is_admin=True),
    Endpoint("/v1/reload", reload_models, "openai", is_admin=True),
)
