"""The server's route of attention, and what its page shows of it.

It is the one file of this wing that imports the server, which loads it through `SERVER_ROUTES` and
`SERVER_PAGE_PARTS`. PyTorch, which shows attention, is loaded at the first request of it.
"""

from importlib import resources
from typing import Annotated, Any

from pydantic import Field

from bertkit.base.errors import InputError
from bertkit.base.extras import require_torch
from bertkit.reports.interactive import read_files
from bertkit.serving.endpoint import Endpoint, RequestContext
from bertkit.serving.errors import Reason
from bertkit.serving.routes.requests import InputsBody, OwnBody, Pair, Text
from bertkit.serving.routes.tasks import OF_MODEL, PageParts, TaskResults, answer
from bertkit.serving.service import ReadyModel

MAX_TOKENS_WITH_ATTENTION = 256  # whose weights, in one layer of BERT-Large, are a million numbers


class AttentionOptions(OwnBody):
    """Which attention is shown; null is the layer with the most telling weight."""

    layer: Annotated[int, Field(strict=True, ge=1)] | None = 1


class AttentionBody(InputsBody[Text | Pair], extra="forbid"):
    """A request of a model's attention: a text, or a list of one text or pair of texts."""

    inputs: Text | Annotated[list[Text | Pair], Field(min_length=1, max_length=1)]
    options: AttentionOptions = AttentionOptions()


async def show_attention(call: RequestContext, body: AttentionBody) -> TaskResults:
    """Show what tokens attend to."""
    loaded, layer = call.find(), body.options.layer
    if loaded.engine is None:
        raise Reason.UNREADABLE.error(f"{call.model} isn't a BERT; this shows the attention of one")
    most = loaded.opened.config.num_hidden_layers
    if layer is not None and layer > most:
        raise Reason.UNREADABLE.error(f"layer is {layer}; {call.model} has layers 1 to {most}")
    require_torch("showing attention")
    found = await call.run(lambda one: attend(loaded, one, layer), body.list_inputs())
    return answer(call, body, found)


def attend(loaded: ReadyModel, text: str | tuple[str, str], layer: int | None) -> dict[str, Any]:
    """Return the tokens of a text or a pair, and the weights of each head of a layer.

    `start` is the head, from 1, and the token, from 0, of the most telling weight; each is null if
    there is none. Without a layer, it is that of this weight.
    """
    from bertkit.inference.torch_model import find_network
    from bertkit.interpret.inspected_model import InspectedModel
    from bertkit.interpret.opening import choose_start
    from bertkit.interpret.views.view import ViewInputs

    assert loaded.engine is not None
    inspected = InspectedModel.of(loaded.opened, find_network(loaded.engine).encoder)
    first, second = (text, None) if isinstance(text, str) else text
    encoded = inspected.read(first, second)
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
        "segments": encoded.sides,
        "layer": shown,
        "start": {"head": start.head, "token": start.token},
        "num_layers": inspected.model.config.num_hidden_layers,
        "weights": weights.round(5),
    }


def read_page_parts() -> PageParts:
    """Return the page's script of attention, which draws with the view of the heads."""
    here = resources.files("bertkit.interpret")
    views = here.joinpath("views")
    modules = read_files(views, ".js") | read_files(here.joinpath("page"), ".js")
    return PageParts(["attention"], modules, [read_files(views, ".css")["heads.css"]])


ENDPOINTS = (Endpoint(OF_MODEL + "attention", show_attention, "openai"),)
