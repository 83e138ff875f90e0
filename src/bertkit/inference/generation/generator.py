"""Tokens that a model must never generate."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self, overload

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.base.errors import BertkitError, CheckpointError, InputError, pluralize
from bertkit.inference.decoding.beam import DecodingLimits, DecodingSource, Hypothesis
from bertkit.inference.decoding.search import decode, stream
from bertkit.inference.engines.choice import cast_whole, find_device
from bertkit.inference.generation.settings import GeneratorSettings
from bertkit.inference.loading import LoadedModel
from bertkit.inference.predictor import NamedText, name_texts
from bertkit.inference.settings import PrecisionName
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.models.open_model import OpenModel
from bertkit.models.seq2seq.model import EncoderDecoderModel
from bertkit.nn.key_value_cache import KVCache, find_sources
from bertkit.nn.packing import PackedBatch, plan_batches
from bertkit.reports.notebook import ResultList, Row, Tabular
from bertkit.tokenization.detokenization import Spacing, find_mark, join_word_pieces
from bertkit.tokenization.tokenizer import Tokenizer

UNUSED = re.compile(r"\[unused\d+\]")  # entries that published vocabularies keep free


def find_suppressed_tokens(tokenizer: Tokenizer, end_id: int, num_scores: int) -> tuple[int, ...]:
    """Return ids to suppress: special but the end token, unused, and beyond the vocabulary.

    Args:
        tokenizer: the tokenizer of the output.
        end_id: the end token.
        num_scores: the number of ids that the model scores.
    """
    named = enumerate(tokenizer.vocabulary[:num_scores])
    unused = {id_ for id_, entry in named if UNUSED.fullmatch(entry)}
    suppressed = (tokenizer.special_ids | unused) - {end_id}
    return (*sorted(suppressed), *range(tokenizer.vocab_size, num_scores))


CausalModel = LoadedModel[BertLMHeadModel]


def load_causal(
    path: str | Path,
    device: str = "auto",
    *,
    revision: str | None = None,
    precision: PrecisionName = "auto",
) -> CausalModel:
    """Load a left-to-right model.

    Arguments and errors are those of `LoadedModel.load` and `cast_whole`.
    """
    opened = OpenModel.open(path, revision=revision)
    is_bert = opened.checkpoint.config.get("model_type", "bert") == "bert"
    if is_bert and not opened.is_causal:
        raise CheckpointError(
            f"{opened.folder}: the model is bidirectional, so it can't predict the next word;"
            f" `bertkit pretrain --objective causal --from` it trains one that can"
        )
    loaded = LoadedModel.load(BertLMHeadModel, opened, device)
    cast_whole(loaded.model, precision, find_device(loaded.model))
    return loaded


class PromptSequences:
    """Continuations of prompts by a left-to-right model, with a key/value cache.

    Args:
        model: in evaluation mode.
        prompts: the first tokens of each row, without the end token; on the model's device.
    """

    def __init__(self, model: BertLMHeadModel, prompts: PackedBatch) -> None:
        self._model = model
        self._batch = KVCache(prompts)

    @torch.inference_mode()
    def scores(self) -> Float[Tensor, "rows vocabulary"]:
        """Return the scores of each row's next token."""
        prompts = self._batch.prompts
        last = None if prompts is None else prompts.last_tokens
        return self._model.next_scores(self._batch, last).float()

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Keep the given rows only."""
        self._batch.select(rows)

    @torch.inference_mode()
    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Append one token to each row."""
        self._batch.extend(tokens)


class SourceSequences:
    """Outputs of an encoder-decoder for a batch of sources, with a key/value cache.

    Args:
        model: in evaluation mode.
        sources: the encoder's inputs; on the model's device.
    """

    @torch.inference_mode()
    def __init__(self, model: EncoderDecoderModel, sources: PackedBatch) -> None:
        self._model = model
        self._memory = model.read(sources)
        self._num_sources = self._num_rows = len(sources.lengths)
        starts = [[model.config.decoder_start_token_id]] * self._num_rows
        self._batch = KVCache(PackedBatch.from_single(starts).to(sources.input_ids.device))

    @torch.inference_mode()
    def scores(self) -> Float[Tensor, "rows vocabulary"]:
        """Return the scores of each row's next token."""
        return self._model.next_scores(self._batch, self._memory).float()

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " chosen"]) -> None:
        """Keep the given rows, and the encoder outputs that they attend to."""
        kept = find_sources(rows, self._num_rows, self._num_sources)
        if kept is not None:
            self._memory.select(kept)
            self._num_sources = len(kept)
        self._num_rows = len(rows)
        self._batch.select(rows)

    @torch.inference_mode()
    def extend(self, tokens: Int[Tensor, " rows"]) -> None:
        """Append one token to each row."""
        self._batch.extend(tokens)


PROMPTS_AT_A_TIME = 64  # prompts that are sorted by length and batched together
# Tokens of a batch; the key/value cache holds a few times as many, 74 kB each for BERT-Base.
TOKENS_AT_A_TIME = 8192
BY_DEFAULT = GeneratorSettings()


@dataclass(frozen=True)
class Continuation(Tabular):
    """One continuation of a text.

    Attributes:
        text: the text after the prompt, with a leading space if one belongs there.
        num_tokens: tokens written, without the end token.
        log_probability: natural log probability of the whole continuation, end token included.
        score: the ranking score of answers, as in `Hypothesis`.
        is_finished: whether the model wrote the end token; otherwise it reached the length limit.
    """

    text: str
    num_tokens: int
    log_probability: float
    score: float
    is_finished: bool


@dataclass(frozen=True)
class ContinuedText(Tabular):
    """A prompt and its continuations.

    Attributes:
        prompt: the text as given.
        answers: the continuations, best first.
    """

    prompt: str
    answers: list[Continuation]

    @property
    def text(self) -> str:
        """The prompt followed by the best answer."""
        return self.prompt + self.answers[0].text

    def as_row(self) -> Row:
        """Return the prompt and the best answer."""
        return {"prompt": self.prompt, **self.answers[0].as_row()}

    def as_rows(self) -> Sequence[Row]:
        """Return a row for each answer, the best first."""
        return [one.as_row() for one in self.answers]


class Prompt(NamedTuple):
    """A text to continue, with its token ids: [CLS] and its pieces."""

    text: str
    ids: list[int]


@dataclass(frozen=True)
class Generator:
    """Continues texts.

    Examples:
        >>> generate = Generator.load("gpt/")  # doctest: +SKIP
        >>> generate("The captain looked at").text  # doctest: +SKIP
        'The captain looked at the sea.'

    Attributes:
        loaded: the model and its tokenizer.
        spacing: where spaces go around punctuation in the output; `Spacing.fit` learns it from
            texts.
    """

    loaded: CausalModel
    spacing: Spacing = field(default_factory=Spacing)

    @classmethod
    def load(
        cls,
        path: str | Path,
        device: str = "auto",
        *,
        revision: str | None = None,
        precision: PrecisionName = "auto",
    ) -> Self:
        """Load a left-to-right model; arguments and errors are those of `load_causal`."""
        return cls(load_causal(path, device, revision=revision, precision=precision))

    @overload
    def __call__(self, prompt: str, settings: GeneratorSettings = BY_DEFAULT) -> ContinuedText: ...

    @overload
    def __call__(
        self, prompt: list[str] | tuple[str, ...], settings: GeneratorSettings = BY_DEFAULT
    ) -> list[ContinuedText]: ...

    def __call__(
        self,
        prompt: str | list[str] | tuple[str, ...],
        settings: GeneratorSettings = BY_DEFAULT,
    ) -> ContinuedText | list[ContinuedText]:
        """Continue one text, or several.

        Args:
            prompt: may be empty; the model then starts from [CLS] alone.
            settings: how tokens are chosen.
        """
        prompts = [prompt] if isinstance(prompt, str) else prompt
        found = ResultList(self.stream(prompts, settings))
        return found[0] if isinstance(prompt, str) else found

    def stream(
        self, prompts: Iterable[str | NamedText], settings: GeneratorSettings = BY_DEFAULT
    ) -> Iterator[ContinuedText]:
        """Continue any number of texts, in bounded memory.

        Args:
            prompts: read ahead by a few dozen.
            settings: as in `__call__`.

        Yields:
            One result per text, in input order.

        Raises:
            InputError: as in `__call__`, after the results of the preceding texts.
        """
        named, first = name_texts(prompts), 0
        while True:
            window, error = self._take(named)
            yield from self._continue_window(window, first, settings)
            if error is not None:
                raise error
            if not window:
                return
            first += len(window)

    def write(self, prompt: str, settings: GeneratorSettings = BY_DEFAULT) -> Iterator[str]:
        """Continue one text, yielding it word by word.

        Args:
            prompt: as in `__call__`.
            settings: without beam search and for one answer.

        Yields:
            Pieces of the continuation. A word is held back until the next one starts, because more
            pieces may extend it, and punctuation for one word more, because the spaces around it
            depend on what follows. Joined, they equal the result of `__call__`.

        Raises:
            InputError: as in `__call__`.
            SettingsError: `settings` ask for beams or several answers.
        """
        (named,) = name_texts([prompt])
        ids = self._encode(named)
        sequences = PromptSequences(self.loaded.model, self._pack([ids]))
        limits = self._limits([ids])
        written: list[int] = []
        num_shown = 0
        for token in stream(sequences, settings, limits, DecodingSource(tuple(ids))):
            written.append(token)
            text = self._continuation_text(prompt, ids, written, is_open=True)
            if len(text) > num_shown:
                yield text[num_shown:]
                num_shown = len(text)
        yield self._continuation_text(prompt, ids, written)[num_shown:]

    def _take(self, named: Iterator[NamedText]) -> tuple[list[Prompt], BertkitError | None]:
        """Return the next texts up to the first that fails, and its error if there is one."""
        window: list[Prompt] = []
        try:
            for one in islice(named, PROMPTS_AT_A_TIME):
                ids = self._encode(one)
                window.append(Prompt(one.text, ids))
        except BertkitError as error:
            return window, error
        return window, None

    def _continue_window(
        self, window: Sequence[Prompt], first: int, settings: GeneratorSettings
    ) -> Iterator[ContinuedText]:
        """Yield the results of a window of texts; `first` is the number of its first text."""
        encoded = [prompt.ids for prompt in window]
        num_rows = max(settings.beams, settings.num_answers)
        limit = self.loaded.max_length
        most = limit if settings.max_tokens is None else settings.max_tokens
        sizes = [min(limit, len(ids) + most) * num_rows for ids in encoded]
        found: dict[int, list[Hypothesis]] = {}
        for chosen in plan_batches(sizes, TOKENS_AT_A_TIME):
            rows = [encoded[index] for index in chosen]
            sources = [DecodingSource(tuple(encoded[index]), first + index) for index in chosen]
            sequences = PromptSequences(self.loaded.model, self._pack(rows))
            answers = decode(sequences, settings, self._limits(rows), sources)
            found.update(zip(chosen, answers, strict=True))
        for index, (text, ids) in enumerate(window):
            yield ContinuedText(text, [self._describe(text, ids, one) for one in found[index]])

    def _encode(self, named: NamedText) -> list[int]:
        """Return the ids of [CLS] and the text."""
        ids = [self.loaded.tokenizer.cls_id, *self.loaded.tokenizer.piece_ids([named.text])[0]]
        if len(ids) >= self.loaded.max_length:
            raise InputError(
                f"{named.name} ({named.text[:40]!r}) has {pluralize(len(ids), 'token')}, and"
                f" the model {self.loaded.limit}, generated text included; shorten it"
            )
        return ids

    def _pack(self, rows: Sequence[Sequence[int]]) -> PackedBatch:
        device = self.loaded.model.encoder.embeddings.word.weight.device
        return PackedBatch.from_single(rows).to(device)

    def _limits(self, rows: Sequence[Sequence[int]]) -> DecodingLimits:
        most = [self.loaded.max_length - len(ids) for ids in rows]
        return DecodingLimits(self.loaded.tokenizer.sep_id, most, self._suppressed_ids)

    @cached_property
    def _suppressed_ids(self) -> tuple[int, ...]:
        tokenizer = self.loaded.tokenizer
        return find_suppressed_tokens(
            tokenizer, tokenizer.sep_id, self.loaded.model.config.vocab_size
        )

    def _describe(self, prompt: str, ids: Sequence[int], found: Hypothesis) -> Continuation:
        return Continuation(
            text=self._continuation_text(prompt, ids, found.tokens),
            num_tokens=len(found.tokens),
            log_probability=found.log_probability,
            score=found.score,
            is_finished=found.is_finished,
        )

    def _continuation_text(
        self, prompt: str, ids: Sequence[int], written: Sequence[int], *, is_open: bool = False
    ) -> str:
        """Return the written text as it follows the prompt, with or without a leading space.

        Args:
            prompt: the prompt as given.
            ids: the prompt's token ids.
            written: the token ids that follow.
            is_open: whether more tokens may follow; text that they could change is then left out.
        """
        vocabulary = self.loaded.tokenizer.vocabulary
        pieces = [vocabulary[token] for token in (*ids, *written)]
        text = self.spacing.join(pieces, normalize=False)
        start = find_letter(text, count_letters(pieces[: len(ids)]))
        stop = find_letter(text, count_settled_letters(pieces)) if is_open else len(text)
        text_after = unicodedata.normalize("NFC", text[start:stop])
        return text_after.lstrip() if not prompt or prompt[-1].isspace() else text_after


def count_letters(pieces: Sequence[str]) -> int:
    """Count the characters of the words that pieces form, without spaces."""
    return sum(map(len, join_word_pieces(pieces)))


def count_settled_letters(pieces: Sequence[str]) -> int:
    """Count the characters of the words that no later token can change.

    More pieces may extend the last word, and the spaces around punctuation before it depend on it.
    """
    words = join_word_pieces(pieces)
    is_after_mark = len(words) > 1 and find_mark(words[-2]) is not None
    return sum(map(len, words[: -2 if is_after_mark else -1]))


def find_letter(text: str, number: int) -> int:
    """Return the index in `text` after the first `number` characters that aren't spaces."""
    passed = 0
    for place, letter in enumerate(text):
        if passed >= number:
            return place
        passed += letter != " "
    return len(text)
