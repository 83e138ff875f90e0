"""The same text gives the same answer, whoever shares its batch, for every kind of pipeline."""

import asyncio
import dataclasses
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.unit.inference.small import WORDS
from tests.unit.serving.small_models import HAS_DECODERS, save_models

from bertkit.base.settings import Settings
from bertkit.checkpoints.bundled import find_bundled
from bertkit.inference.embeddings.settings import EmbedOptions
from bertkit.inference.settings import FillOptions
from bertkit.serving.service import ServedModel
from bertkit.serving.settings import ServeSettings
from bertkit.serving.sharing.fair_queue import ModelRequest
from bertkit.serving.sharing.worker import Worker

# Each word is a token, so that two texts fit into the 24 of the small models.
TEXTS = st.lists(st.sampled_from(WORDS[:-1]), min_size=1, max_size=9).map(" ".join)
PAIRS = st.tuples(TEXTS, TEXTS)
TWO = FillOptions(top_k=2)
# The model, its task, options of requests, and what inputs are like.
KINDS: dict[str, tuple[str, str, Settings | None, st.SearchStrategy[Any]]] = {
    "embed": ("encoder", "embed", None, TEXTS),
    "embed, shorter": ("encoder", "embed", EmbedOptions(dimensions=7, normalize=True), TEXTS),
    "embed, not scaled": ("encoder", "embed", EmbedOptions(normalize=False), TEXTS),
    "embed, by token": ("encoder", "embed", EmbedOptions(by_token=True), TEXTS),
    "embed, the end": ("encoder", "embed", EmbedOptions(keeps_end=True), TEXTS),
    "fill-mask": ("words", "fill-mask", None, TEXTS.map("{} [MASK]".format)),
    "fill-mask, two": ("words", "fill-mask", TWO, TEXTS.map("[MASK] {} [MASK]".format)),
    "next-sentence": ("words", "next-sentence", None, PAIRS),
    "score": ("words", "score", None, TEXTS),
    "classify": ("sentiment", "classify", None, TEXTS | PAIRS),
    "regress": ("reranker", "regress", None, PAIRS),
    "tag": ("entities", "tag", None, TEXTS),
    "answer": ("reader", "answer", None, PAIRS),
    "choose": ("chooser", "choose", None, st.tuples(TEXTS, st.tuples(TEXTS, TEXTS))),
}
if HAS_DECODERS:
    from bertkit.decoders.decoding.settings import DecodingOverrides
    from bertkit.decoders.generation.settings import GeneratorSettings

    SIX, DRAWN = GeneratorSettings(max_tokens=6), {"temperature": 1.0, "seed": 3, "max_tokens": 6}
    KINDS |= {
        "score, left to right": ("writer", "score", None, TEXTS),
        "generate": ("writer", "generate", SIX, TEXTS),
        "generate, drawn": ("writer", "generate", GeneratorSettings(**DRAWN), TEXTS),
        "translate": ("translator", "translate", None, TEXTS),
        "translate, drawn": ("translator", "translate", DecodingOverrides(**DRAWN), TEXTS),
    }


class Served:
    """Pipelines by kind; hypothesis can't print them."""

    def __init__(self, pipelines: dict[str, Any], *, is_deterministic: bool) -> None:
        self.pipelines = pipelines
        self.is_deterministic = is_deterministic


Request = tuple[str, list[Any], str]  # kind, inputs, client


@st.composite
def requests(draw) -> Request:
    kind = draw(st.sampled_from(list(KINDS)))
    inputs = draw(st.lists(KINDS[kind][3], min_size=1, max_size=4))
    return kind, inputs, draw(st.sampled_from("abc"))


@pytest.fixture(scope="module", params=[False, True], ids=["joint", "deterministic"])
def served(request, tmp_path_factory):
    """Every kind's pipeline as a server has it."""
    settings = ServeSettings(device="cpu", precision="fp32", deterministic=request.param)
    folders = {"encoder": find_bundled("vectors")}
    folders |= save_models(tmp_path_factory.mktemp("models"))
    ready = {name: ServedModel(name, str(path), settings).load() for name, path in folders.items()}
    pipelines = {
        kind: ready[name].choose(task, options) for kind, (name, task, options, _) in KINDS.items()
    }
    return Served(pipelines, is_deterministic=request.param)


async def ask_together(pipelines, mix: list[Request], *, is_deterministic: bool) -> list[list[Any]]:
    """The answers to requests that wait for the same worker at once."""
    limits, may_begin = ServeSettings(), threading.Event()
    worker = Worker("m", limits, batch_tokens=64, is_deterministic=is_deterministic)
    worker.start()

    def ask(compute: Any, inputs: list[Any], client: str) -> Any:
        return asyncio.ensure_future(worker.compute(ModelRequest(compute, inputs, client)))

    held = ask(lambda _: may_begin.wait(60), [0], "a")
    tasks = [ask(pipelines[kind], inputs, client) for kind, inputs, client in mix]
    await asyncio.sleep(0)
    may_begin.set()
    try:
        await held
        return await asyncio.gather(*tasks)
    finally:
        assert worker.close(60)


def compute_alone(pipeline: Any, inputs: list[Any], number: int) -> Any:
    """The answer to one input of a request, alone, under its number."""
    encoded = pipeline.encode_window([list(pipeline.read(inputs))[number]])
    (found,) = pipeline.decode_window(encoded, pipeline.compute_window(encoded))
    return found


def list_values(found: Any) -> list[Any]:
    """All that an answer has, one after the other."""
    if dataclasses.is_dataclass(found):
        found = [getattr(found, one.name) for one in dataclasses.fields(found)]
    if isinstance(found, dict):
        found = [*found.keys(), *found.values()]
    if hasattr(found, "tolist"):
        found = found.tolist()
    if isinstance(found, list | tuple):
        return [value for one in found for value in list_values(one)]
    return [found]


def find_difference(found: Any, expected: Any) -> float:
    """How far numbers are from each other; what isn't a number must be the same."""
    pairs = list(zip(list_values(found), list_values(expected), strict=True))
    is_number = [all(isinstance(one, float) for one in pair) for pair in pairs]
    assert [pair for pair, is_one in zip(pairs, is_number, strict=True) if not is_one] == [
        (other, other) for (_, other), is_one in zip(pairs, is_number, strict=True) if not is_one
    ]
    numbers = np.array([pair for pair, is_one in zip(pairs, is_number, strict=True) if is_one])
    if not numbers.size:
        return 0.0
    return np.abs(numbers[:, 0] - numbers[:, 1]).max() / max(1.0, np.abs(numbers[:, 1]).max())


@given(mix=st.lists(requests(), min_size=1, max_size=12))
@settings(max_examples=12, phases=[Phase.explicit, Phase.generate])
def test_who_shares_a_batch_changes_no_answer(served, mix):
    is_deterministic, pipelines = served.is_deterministic, served.pipelines
    found = asyncio.run(ask_together(pipelines, mix, is_deterministic=is_deterministic))
    for (kind, inputs, _), answers in zip(mix, found, strict=True):
        assert len(answers) == len(inputs)
        for number, answer in enumerate(answers):
            most = 0.0 if is_deterministic else 1e-6
            difference = find_difference(answer, compute_alone(pipelines[kind], inputs, number))
            assert difference <= most, kind
        if is_deterministic:
            assert find_difference(answers[0], pipelines[kind](inputs[0])) == 0.0
