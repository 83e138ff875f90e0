"""bertkit's own routes: a pipeline's call and its JSON, for one input or several."""

from typing import Any

from bertkit.serving.answers import Endpoint
from bertkit.serving.requests import TaskBody
from bertkit.serving.service import RequestContext

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
    is_several = isinstance(body.inputs, list)
    inputs = [as_input(one) for one in body.inputs] if is_several else [as_input(body.inputs)]
    found = await call.compute(None, task, inputs, body.options, truncate=body.truncate)
    usage = {"total_tokens": call.work.num_tokens if call.work else 0}
    return {"model": call.model, "results": found if is_several else found[0], "usage": usage}


def as_input(value: Any) -> Any:
    """Return a value of JSON as pipelines take it, where a list is a pair."""
    return tuple(value) if isinstance(value, list) else value


ENDPOINTS = tuple(
    Endpoint(f"/v1/models/{{model}}/{task}", compute_task, TaskBody, "openai", summary)
    for task, summary in TASKS.items()
)
