"""The server's routes of what writes texts.

They are bertkit's own, OpenAI's completions, and the Hub's forms. It is the one file of this wing
that imports the server, which loads it through `SERVER_ROUTES` and `SERVER_HUB_FORMS`. A server
without a model that writes needs no PyTorch for it.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, JsonValue
from starlette.responses import Response, StreamingResponse

from bertkit.base.errors import BertkitError
from bertkit.base.settings import Settings
from bertkit.decoders.decoding.option_names import translate_names
from bertkit.decoders.decoding.settings import SAMPLING, DecodingOverrides
from bertkit.decoders.generation.settings import GeneratorSettings
from bertkit.decoders.generation.stopped_text import StoppedText
from bertkit.inference.settings import take_settings
from bertkit.serving.endpoint import EVENTS, JSON, Endpoint, RequestContext, write_events
from bertkit.serving.errors import Reason, Style, describe_refusal, write_error
from bertkit.serving.routes.hub import HubForm, read
from bertkit.serving.routes.openai import Usage, list_inputs
from bertkit.serving.routes.requests import Body, HubRequest, OwnBody, TaskBody, Text
from bertkit.serving.routes.tasks import OF_MODEL, TaskResults, compute_task

if TYPE_CHECKING:
    from bertkit.decoders.generation.generator import ContinuedText, WordStream
    from bertkit.decoders.generation.seq2seq_generator import GeneratedText

Event = Mapping[str, JsonValue]
WORD_COST = 32  # of a word that is streamed: tokens that are read in about that time


class WriteParameters(OwnBody):
    """How a text is written, under transformers' names or ours."""

    generate_parameters: dict[str, JsonValue] = Field(default_factory=dict)


WriteRequest = HubRequest[Text, WriteParameters]
Stop = Annotated[str, Field(strict=True, min_length=1, max_length=200)]
Stops = Annotated[list[Stop], Field(max_length=16, fail_fast=True)]


class ContinueParameters(Body, extra="allow"):
    """What is wanted of a continued text; further keys say how its tokens are chosen."""

    stop: Stops | None = None
    return_full_text: bool | None = None
    details: Literal[False] | None = None


class ContinueRequest(HubRequest[Text, ContinueParameters]):
    """A request of the Hub's clients to continue a text."""

    stream: bool = False  # type: ignore[assignment]


class CompletionsBody(Body, extra="allow"):
    """A request of `/v1/completions`, as OpenAI defines it.

    Further keys say how tokens are chosen, under OpenAI's names, transformers' or ours.
    """

    prompt: Text | Annotated[list[Text], Field(min_length=1, fail_fast=True)]
    model: Text | None = None
    stop: Stop | Stops | None = None
    echo: bool | None = None
    return_full_text: bool | None = None
    stream: bool | None = None
    stream_options: dict[str, JsonValue] | None = None
    user: Text | None = None

    @property
    def stops(self) -> list[str]:
        """The stop sequences."""
        return [self.stop] if isinstance(self.stop, str) else self.stop or []

    @property
    def keeps_prompt(self) -> bool:
        """Whether answers begin with the prompt."""
        return bool(self.echo or self.return_full_text)


class GenerateBody(TaskBody[Text, GeneratorSettings]):
    """A request with texts to continue."""

    stream: bool = False


class WriteBody(TaskBody[Text, DecodingOverrides]):
    """A request with texts of which others are written."""


@dataclass
class StreamForm:
    """How what is written becomes events.

    Attributes:
        text: what is written.
        shape: makes an event of a part of the text, its number, and whether it is the last.
        style: of an event that is an error.
    """

    shape: Callable[[str, int, bool], Event | None]
    text: StoppedText = field(default_factory=StoppedText)
    style: Style = "openai"
    _num_events: int = 0

    def list_events(self, word: str | None) -> Iterator[Event]:
        """Yield what there is to send of the next word, or at the end."""
        part, is_last = self.text.add(word), word is None
        event = self.shape(part, self._num_events, is_last) if part or is_last else None
        if event is not None:
            self._num_events += 1
            yield event


async def open_stream(
    call: RequestContext,
    text: str,
    options: Settings,
    form: StreamForm,
    truncate: bool | None = None,
) -> Response:
    """Return an answer that is sent word by word."""
    loaded = call.find("generate")
    from bertkit.decoders.generation.generator import Generator, WordStream

    generator = loaded.choose("generate", options)
    assert isinstance(generator, Generator)
    stream = WordStream(generator.loaded, generator.spacing, generator.options)
    try:
        most = loaded.max_length
        first = await call.run(
            stream, [text], truncate=truncate, most_tokens=most, written_tokens=WORD_COST
        )
    except BaseException:
        stream.end()
        raise
    events = write_events(send_words(call, stream, first, form))
    return StreamingResponse(events, headers={"cache-control": "no-cache"}, media_type=EVENTS)


async def send_words(
    call: RequestContext, stream: "WordStream", found: Sequence[str | None], form: StreamForm
) -> AsyncIterator[Any]:
    """Yield an event for each word, and perhaps an error; others are computed between words."""
    try:
        while found[0] is not None and call.request is not None:
            for event in form.list_events(found[0]):
                yield event
            if form.text.is_stopped:
                break
            found = await call.resume(call.request)
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
    given = translate_names(body.model_extra or {})
    if given.get("temperature") == 0:
        given = {key: given[key] for key in given if key not in (*SAMPLING, "seed")}
    options = take_settings(GeneratorSettings, given, "Generator")
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
    found = await call.compute("generate", list_inputs(body.prompt), options)
    choices = [
        Completion(0, one.prompt * body.keeps_prompt + text, reason)
        for one in found
        for text, reason in cut_answers(one, body.stops)
    ]
    choices = [replace(one, index=index) for index, one in enumerate(choices)]
    num_written = sum(answer.num_tokens for one in found for answer in one.answers)
    usage = CompletionUsage(call.num_tokens, call.num_tokens + num_written, num_written)
    return Completions(call.identity, "text_completion", created, call.model, choices, usage)


def shape_chunk(
    call: RequestContext, created: int, prompt: str, part: str, number: int, is_last: bool
) -> Event | None:
    """Return an event of OpenAI's stream; it doesn't tell why the text ends."""
    text = part if number else prompt + part
    if is_last and not text:
        return None
    head: Event = {"id": call.identity, "object": "text_completion", "created": created}
    choice: dict[str, JsonValue] = {
        "index": 0,
        "text": text,
        "logprobs": None,
        "finish_reason": None,
    }
    return {**head, "model": call.model, "choices": [choice]}


def cut_answers(
    continued: "ContinuedText", stops: Sequence[str], *, keeps_stop: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield each answer up to a stop sequence, and why it ends: stop or length."""
    for answer in continued.answers:
        kept = StoppedText(stops, keeps_stop)
        kept.add(answer.text)
        yield kept.text, "stop" if kept.is_stopped or answer.is_finished else "length"


async def continue_texts(call: RequestContext, _: str, given: Mapping[str, Any]) -> Any:
    """Return texts as the Hub's clients expect them: all answers to a text, or the best of each."""
    body: ContinueRequest = read(ContinueRequest, given)
    parameters = body.parameters
    given, stops = translate_names(parameters.model_extra or {}), parameters.stop or []
    options = take_settings(GeneratorSettings, given, "Generator")
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


def shape_token(kept: StoppedText, prompt: str, part: str, number: int, is_last: bool) -> Event:
    """Return an event of text-generation-inference's stream, for a word instead of a token."""
    return {
        "index": number + 1,
        "token": {"id": None, "text": part, "logprob": None, "special": is_last and not part},
        "generated_text": prompt + kept.text if is_last else None,
        "details": None,
    }


WRITING = {"translate": "Translate texts.", "summarize": "Write or extract summaries."}
STREAMED = (JSON, EVENTS)
COMPLETIONS = "/v1/completions"  # the Hub's client for Node puts it behind a model's address
ENDPOINTS = (
    Endpoint(OF_MODEL + "generate", generate, "openai", answer=TaskResults, media_types=STREAMED),
    *(
        Endpoint(path, complete, "openai", answer=Completions, media_types=STREAMED)
        for path in (COMPLETIONS, OF_MODEL.rstrip("/") + COMPLETIONS)
    ),
    *(
        Endpoint(OF_MODEL + task, compute_task, "openai", WriteBody, summary=summary)
        for task, summary in WRITING.items()
    ),
)


def write_form(key: str) -> "HubForm[GeneratedText, WriteParameters]":
    """Return the Hub's form of a task that writes a text, under its key."""
    return HubForm(
        WriteRequest,
        lambda written, _: {key: written.text},
        lambda parameters: take_settings(
            DecodingOverrides, translate_names(parameters.generate_parameters), "the task"
        ),
        is_listed=True,
    )


HUB_FORMS = {
    "generate": continue_texts,
    "translate": write_form("translation_text").answer,
    "summarize": write_form("summary_text").answer,
}
