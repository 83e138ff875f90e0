"""Routes that continue a text: bertkit's own, OpenAI's completions, and the Hub's."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from starlette.responses import Response, StreamingResponse

from bertkit.base.errors import BertkitError
from bertkit.decoders.generation.generator import ContinuedText, Generator, WordStream
from bertkit.serving.errors import Reason, describe_refusal, write_error
from bertkit.serving.routes.answers import EVENTS, JSON, Endpoint, TaskResults, write_events
from bertkit.serving.routes.openai import Usage
from bertkit.serving.routes.requests import CompletionsBody, ContinueRequest, GenerateBody
from bertkit.serving.routes.tasks import OF_MODEL, compute_task
from bertkit.serving.service import RequestContext

# Names that transformers and OpenAI have for options of decoding, and ours.
NAMES = {
    "max_new_tokens": "max_tokens",
    "min_new_tokens": "min_tokens",
    "num_beams": "beams",
    "num_return_sequences": "num_answers",
    "n": "num_answers",
    "no_repeat_ngram_size": "no_repeat_ngram",
    "do_sample": "sample",
}
# Values of options that aren't there, at which they change nothing; clients send them unasked.
NEUTRAL = {
    "best_of": 1,
    "frequency_penalty": 0,
    "logit_bias": {},
    "presence_penalty": 0,
    "repetition_penalty": 1,
}
DRAWING = {"temperature", "top_k", "top_p"}


def translate_names(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of decoding under our names; whoever says how to draw wants to draw."""
    found = {
        NAMES.get(key, key): value
        for key, value in given.items()
        if value is not None and not (key in NEUTRAL and value == NEUTRAL[key])
    }
    if not DRAWING.isdisjoint(found):
        found.setdefault("sample", True)
    if not found.get("sample"):
        found.pop("seed", None)  # nothing is drawn
    return found


@dataclass
class StoppedText:
    """What is written, up to the stop sequence that ends first.

    Attributes:
        stops: the sequences, none of them empty.
        keeps_stop: whether the sequence itself stays.
    """

    stops: Sequence[str] = ()
    keeps_stop: bool = False
    text: str = ""
    is_stopped: bool = False
    _num_given: int = 0

    def add(self, part: str | None) -> str:
        """Add what is written next, or None at the end; return what no later part can change."""
        self.text += part or ""
        settled = len(self.text)
        starts = [(self.text.find(one), one) for one in self.stops if one in self.text]
        if starts:  # the one that ends first, which a stream meets first
            end, start = min((start + len(one), start) for start, one in starts)
            self.text = self.text[: end if self.keeps_stop else start]
            self.is_stopped, settled = True, len(self.text)
        elif part is not None:
            settled -= max((len(one) for one in self._begun if self.text.endswith(one)), default=0)
        given = self.text[self._num_given : settled]
        self._num_given += len(given)
        return given

    @cached_property
    def _begun(self) -> set[str]:
        """What may become a stop sequence."""
        return {one[:size] for one in self.stops for size in range(1, len(one))}


@dataclass
class StreamForm:
    """How what is written becomes events.

    Attributes:
        text: what is written.
        shape: makes an event of a part of the text, its number, and whether it is the last.
        style: of an event that is an error.
    """

    shape: Callable[[str, int, bool], Any]
    text: StoppedText = field(default_factory=StoppedText)
    style: str = "openai"
    _num_events: int = 0

    def list_events(self, word: str | None) -> Iterator[Any]:
        """Yield what there is to send of the next word, or at the end."""
        part, is_last = self.text.add(word), word is None
        event = self.shape(part, self._num_events, is_last) if part or is_last else None
        if event is not None:
            self._num_events += 1
            yield event


async def open_stream(
    call: RequestContext,
    text: str,
    options: Mapping[str, Any],
    form: StreamForm,
    truncate: bool | None = None,
) -> Response:
    """Return an answer that is sent word by word."""
    loaded = call.find("generate")
    generator: Generator = loaded.choose("generate", options)
    stream = WordStream(generator.loaded, generator.spacing, generator.options)
    try:
        first = await call.run(stream, [text], truncate=truncate, most_tokens=loaded.max_length)
    except BaseException:
        stream.end()
        raise
    events = write_events(send_words(call, stream, first, form))
    return StreamingResponse(events, headers={"cache-control": "no-cache"}, media_type=EVENTS)


async def send_words(
    call: RequestContext, stream: WordStream, found: Sequence[str | None], form: StreamForm
) -> AsyncIterator[Any]:
    """Yield an event for each word, and perhaps an error; others are computed between words."""
    try:
        while found[0] is not None and call.work is not None:
            for event in form.list_events(found[0]):
                yield event
            if form.text.is_stopped:
                break
            found = await call.go_on(call.work)
        for event in form.list_events(None):
            yield event
        call.failure = ""
    except BertkitError as error:
        refusal = describe_refusal(error)
        call.failure = refusal.reason.kind
        yield write_error(refusal, form.style)[1]
    finally:
        stream.end()  # else what a cancelled task holds keeps its key/value cache


def take_one(given: str | Sequence[str], name: str) -> str:
    """Return the one text of a request that wants a stream."""
    if not isinstance(given, str):
        raise Reason.UNREADABLE.error(
            f"stream is for one text, and {name} is a list; give the text alone"
        )
    return given


async def generate(call: RequestContext, body: GenerateBody) -> TaskResults | Response:
    """Continue texts.

    One can be sent word by word.
    """
    if not body.stream:
        return await compute_task(call, body)
    form = StreamForm(lambda part, _, is_last: None if is_last else {"text": part})
    text = take_one(body.inputs, "inputs")
    return await open_stream(call, text, body.options, form, body.truncate)


@dataclass(frozen=True)
class Completion:
    """A continuation of a prompt."""

    index: int
    text: str
    finish_reason: str
    logprobs: None = None


@dataclass(frozen=True)
class CompletionUsage(Usage):
    """Tokens that the model read, and those that it wrote."""

    completion_tokens: int


@dataclass(frozen=True)
class Completions:
    """The answer of `/v1/completions`.

    Attributes:
        created: when the model's folder changed last, as in the list of models.
    """

    id: str
    object: str
    created: int
    model: str
    choices: list[Completion]
    usage: CompletionUsage


async def complete(call: RequestContext, body: CompletionsBody) -> Completions | Response:
    """Continue prompts, as OpenAI's older models do.

    The likeliest tokens are taken; they are drawn where temperature, top_k or top_p are given.
    """
    if call.named is None and "://" not in (body.model or ""):  # Node's client for the Hub names
        call.named = body.model  # the address of the server
    options = translate_names(body.model_extra or {})
    if options.get("temperature") == 0:
        options = {key: options[key] for key in options.keys() - DRAWING - {"sample", "seed"}}
    created = call.find("generate").changed
    if (body.stream_options or {}).get("include_usage"):
        raise Reason.UNREADABLE.error(
            "stream_options.include_usage: a stream doesn't tell its usage; leave it out, or set it"
            " to false"
        )
    if body.stream:
        prompt = take_one(body.prompt, "prompt")
        shape = partial(shape_chunk, call, created, prompt if body.keeps_prompt else "")
        form = StreamForm(shape, StoppedText(body.stops))
        return await open_stream(call, prompt, options, form)
    found = await call.compute("generate", body.list_prompts(), options)
    choices = [
        Completion(0, one.prompt * body.keeps_prompt + text, reason)
        for one in found
        for text, reason in cut_answers(one, body.stops)
    ]
    choices = [replace(one, index=index) for index, one in enumerate(choices)]
    num_written = sum(answer.num_tokens for one in found for answer in one.answers)
    num_read = call.work.num_tokens if call.work else 0
    usage = CompletionUsage(num_read, num_read + num_written, num_written)
    return Completions(call.identity, "text_completion", created, call.model, choices, usage)


def shape_chunk(
    call: RequestContext, created: int, prompt: str, part: str, number: int, is_last: bool
) -> dict[str, Any] | None:
    """Return an event of OpenAI's stream; it doesn't tell why the text ends."""
    text = part if number else prompt + part
    if is_last and not text:
        return None
    head = {"id": call.identity, "object": "text_completion", "created": created}
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": None}
    return {**head, "model": call.model, "choices": [choice]}


def cut_answers(
    continued: ContinuedText, stops: Sequence[str], *, keeps_stop: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield each answer up to a stop sequence, and why it ends: stop or length."""
    for answer in continued.answers:
        kept = StoppedText(stops, keeps_stop)
        kept.add(answer.text)
        yield kept.text, "stop" if kept.is_stopped or answer.is_finished else "length"


async def continue_texts(call: RequestContext, body: ContinueRequest) -> Any:
    """Return texts as the Hub's clients expect them: all answers to a text, or the best of each."""
    parameters = body.parameters
    options, stops = translate_names(parameters.model_extra or {}), parameters.stop or []
    if body.stream:
        text = take_one(body.inputs, "inputs")
        kept = StoppedText(stops, keeps_stop=True)
        prompt = text if parameters.return_full_text else ""
        form = StreamForm(partial(shape_token, kept, prompt), kept, style="tei")
        return await open_stream(call, text, options, form)
    rows = [
        [
            {"generated_text": one.prompt * bool(parameters.return_full_text) + text}
            for text, _ in cut_answers(one, stops, keeps_stop=True)
        ]
        for one in await call.compute("generate", body.list_inputs(), options)
    ]
    if isinstance(body.inputs, str):
        return rows[0]
    return [row[0] if len(row) == 1 else row for row in rows]


def shape_token(
    kept: StoppedText, prompt: str, part: str, number: int, is_last: bool
) -> dict[str, Any]:
    """Return an event of text-generation-inference's stream, for a word instead of a token."""
    return {
        "index": number + 1,
        "token": {"id": None, "text": part, "logprob": None, "special": is_last and not part},
        "generated_text": prompt + kept.text if is_last else None,
        "details": None,
    }


COMPLETIONS = "/v1/completions"  # the Hub's client for Node puts it behind a model's address
ENDPOINTS = (
    Endpoint(
        OF_MODEL + "generate",
        generate,
        "openai",
        answer=TaskResults,
        media_types=(JSON, EVENTS),
    ),
    *(
        Endpoint(path, complete, "openai", answer=Completions, media_types=(JSON, EVENTS))
        for path in (COMPLETIONS, OF_MODEL.rstrip("/") + COMPLETIONS)
    ),
)
