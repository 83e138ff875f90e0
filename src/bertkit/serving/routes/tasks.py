"""bertkit's own routes: a pipeline's call and its JSON, for one input or several, and the page."""

import asyncio
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import chain
from typing import Any

from pydantic import create_model
from starlette.responses import HTMLResponse, Response

from bertkit.base.settings import Settings
from bertkit.base.wings import SERVER_PAGE_PARTS, list_installed, load_object
from bertkit.inference.settings import FillOptions
from bertkit.reports.interactive import InteractivePage, page_modules, read_files
from bertkit.serving.endpoint import Endpoint, RequestContext
from bertkit.serving.errors import Reason
from bertkit.serving.routes.requests import (
    Choices,
    InputsBody,
    Pair,
    Question,
    TaskBody,
    Text,
    Texts,
)
from bertkit.tasks.classify import ClassifyAnswers
from bertkit.tasks.settings import ExplainAnswers

RELOAD_SECONDS = 5  # that loading a model takes, about

# What each task reads, the options of its pipeline, and what it does.
TASKS: Mapping[str, tuple[type[TaskBody[Any, Any]], str]] = {
    "fill-mask": (TaskBody[Text, FillOptions], "Predict the words for each [MASK]."),
    "next-sentence": (TaskBody[Pair, Settings], "Predict whether a text follows another."),
    "score": (TaskBody[Text, Settings], "Score how likely texts are."),
    "classify": (TaskBody[Text | Pair, ClassifyAnswers], "Classify texts, or pairs of texts."),
    "regress": (TaskBody[Text | Pair, ExplainAnswers], "Predict numbers."),
    "tag": (TaskBody[Text | Texts, ExplainAnswers], "Find entities, or other tags of words."),
    "answer": (
        TaskBody[Question | Pair, ExplainAnswers],
        "Answer questions with a part of a text.",
    ),
    "choose": (TaskBody[Choices, Settings], "Choose among endings."),
}


@dataclass(frozen=True)
class TaskResults:
    """The results of a pipeline: one, or a list as of the inputs."""

    model: str
    results: Any
    usage: dict[str, int]


@dataclass(frozen=True)
class PageParts:
    """What another wing adds to the page.

    Attributes:
        tasks: names of tasks; a module of the same name exports each, as those of `tasks.js`.
        modules: JavaScript by file name.
        styles: style sheets.
    """

    tasks: Sequence[str]
    modules: Mapping[str, str]
    styles: Sequence[str]


async def compute_task(call: RequestContext, body: TaskBody[Any, Any]) -> TaskResults:
    """Return the results of a model's pipeline."""
    task, inputs = call.route.rpartition("/")[2], body.list_inputs()
    found = await call.compute(task, inputs, body.options, truncate=body.truncate)
    return answer(call, body, found)


def answer(call: RequestContext, body: InputsBody[Any], found: Sequence[Any]) -> TaskResults:
    """Return the results in the form of the request, with the model and its tokens."""
    rows = [one.to_json() if hasattr(one, "to_json") else one for one in found]
    return TaskResults(call.model, body.shape(rows), {"total_tokens": call.num_tokens})


async def show_page(call: RequestContext, _: None) -> Response:
    """Try the models in a browser."""
    content, headers = build_page()
    return HTMLResponse(content, headers=headers)


@cache
def build_page() -> tuple[str, dict[str, str]]:
    """Build the page, with the parts of other wings, and return it with its headers."""
    own = resources.files("bertkit.serving").joinpath("page")
    others = [load_object(one)() for one in list_installed(SERVER_PAGE_PARTS).values()]
    names = list(chain.from_iterable(one.tasks for one in others))
    imports = "".join(f'import {{ {name} }} from "./{name}.js";\n' for name in names)
    listed = f"{imports}export const OTHERS = {{ {', '.join(names)} }};\n"
    modules = ChainMap({"others.js": listed}, page_modules(), read_files(own, ".js"))
    modules.maps += [one.modules for one in others]
    styles = chain(read_files(own, ".css").values(), *(one.styles for one in others))
    page = InteractivePage(
        title="Try the models of this server",
        modules=modules,
        styles=list(styles),
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
        Endpoint(
            OF_MODEL + task,
            compute_task,
            "openai",
            create_model(f"{task.title().replace('-', '')}Body", __base__=body, __doc__=summary),
            summary=summary,
        )
        for task, (body, summary) in TASKS.items()
    ),
    Endpoint(OF_MODEL + "reload", reload_models, "openai", summary=RELOAD_ONE, is_admin=True),
    Endpoint("/v1/reload", reload_models, "openai", is_admin=True),
)
