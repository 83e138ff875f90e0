"""bertkit's own routes: a pipeline's call and its JSON, for one input or several, and the page."""

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from bertkit.base.errors import InputError
from bertkit.reports.interactive import InteractivePage, page_modules, read_modules, read_styles
from bertkit.serving.errors import UnreadableError
from bertkit.serving.models import ReadyModel
from bertkit.serving.routes.answers import Endpoint, Plain
from bertkit.serving.routes.requests import AttentionBody, TaskBody
from bertkit.serving.service import RequestContext

MAX_TOKENS_WITH_ATTENTION = 256  # whose weights, in one layer of BERT-Large, are a million numbers

TASKS = {
    "fill-mask": "Predict the words for each [MASK].",
    "score": "Score how likely texts are.",
    "classify": "Classify texts, or pairs of texts.",
    "regress": "Predict numbers.",
    "tag": "Find entities, or other tags of words.",
    "answer": "Answer questions with a part of a text.",
    "choose": "Choose among endings.",
    "translate": "Translate texts.",
    "summarize": "Write summaries.",
    "generate": "Continue texts.",
}


async def compute_task(call: RequestContext, body: TaskBody) -> dict[str, Any]:
    """Return the results of a model's pipeline."""
    task = call.route.rpartition("/")[2]
    found = await call.compute(None, task, list_inputs(body), body.options, truncate=body.truncate)
    return answer(call, body, found)


async def show_attention(call: RequestContext, body: AttentionBody) -> dict[str, Any]:
    """Return the weights of a layer's heads on a text or a pair."""
    loaded, layer = call.find(None), body.options.layer
    if loaded.opened.is_encoder_decoder:
        raise UnreadableError(f"{call.model} is an encoder-decoder; this needs a BERT")
    if layer > (most := loaded.opened.config.num_hidden_layers):
        raise UnreadableError(f"layer is {layer}; {call.model} has layers 1 to {most}")
    found = await call.run(lambda one: attend(loaded, one, layer), list_inputs(body))
    return answer(call, body, found)


def attend(loaded: ReadyModel, text: str | tuple[str, str], layer: int) -> dict[str, Any]:
    """Return the tokens of a text or a pair, and the weights of each head of a layer."""
    inspected = loaded.inspected
    first, second = (text, None) if isinstance(text, str) else text
    encoded = inspected.read(first, second, read_mask=True)
    if len(encoded.tokens) > MAX_TOKENS_WITH_ATTENTION:
        raise InputError(
            f"the text has {len(encoded.tokens)} tokens, and attention is shown of"
            f" {MAX_TOKENS_WITH_ATTENTION} at most; shorten it"
        )
    weights = inspected.observe(encoded).layers[layer - 1].weights.float().numpy()
    return {
        "tokens": encoded.tokens,
        "segments": encoded.encoding.token_type_ids,
        "layer": layer,
        "num_layers": inspected.model.config.num_hidden_layers,
        "weights": weights.round(5),
    }


def list_inputs(body: TaskBody | AttentionBody) -> list[Any]:
    """Return one input, or several, as pipelines take them: a list among them is a pair."""
    given = body.inputs if isinstance(body.inputs, list) else [body.inputs]
    return [tuple(one) if isinstance(one, list) else one for one in given]


def answer(
    call: RequestContext, body: TaskBody | AttentionBody, found: Sequence[Any]
) -> dict[str, Any]:
    """Return the results in the form of the request, with the model and its tokens."""
    results = found if isinstance(body.inputs, list) else found[0]
    usage = {"total_tokens": call.work.num_tokens if call.work else 0}
    return {"model": call.model, "results": results, "usage": usage}


async def show_page(call: RequestContext, _: None) -> Plain:
    """Return the page that lets people try the models; it asks the other routes."""
    return build_page()


@cache
def build_page() -> Plain:
    """Build the page, with the view of heads as the pages of `bertkit view` have it."""
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
    return Plain(page.render().encode(), "text/html; charset=utf-8", headers)


ENDPOINTS = (
    Endpoint("/", show_page, None, "openai", "Try the models in a browser.", is_open=True),
    *(
        Endpoint(f"/v1/models/{{model}}/{task}", compute_task, TaskBody, "openai", summary)
        for task, summary in TASKS.items()
    ),
    Endpoint(
        "/v1/models/{model}/attention",
        show_attention,
        AttentionBody,
        "openai",
        "Show what tokens attend to.",
    ),
)
