"""Continue texts with a left-to-right model."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

from bertkit.base.errors import CheckpointError, InputError, pluralize
from bertkit.checkpoints.families import FAMILIES
from bertkit.decoders.decoding.search import decode, stream
from bertkit.decoders.decoding.sequences import DecodingLimits, DecodingSource, Hypothesis
from bertkit.decoders.decoding.settings import check_seed
from bertkit.decoders.detokenization import Spacing, find_mark, join_word_pieces
from bertkit.decoders.generation.cached_sequences import PromptSequences, find_suppressed_tokens
from bertkit.decoders.generation.settings import GeneratorSettings
from bertkit.inference.engines.torch_engine import cast_whole, find_device
from bertkit.inference.pipeline import SAMPLES, NamedInput, Pipeline, compute_in_batches
from bertkit.inference.settings import LoadingSettings
from bertkit.inference.stream import TextCounts
from bertkit.inference.torch_model import TorchModel
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.models.open_model import OpenModel
from bertkit.nn.packing import PackedBatch
from bertkit.reports.notebook import Row, Tabular

PROMPTS_AT_A_TIME = 64  # prompts that are sorted by length and batched together
# Tokens of a batch; the key/value cache holds a few times as many, 74 kB each for BERT-Base.
TOKENS_AT_A_TIME = 8192


@dataclass(frozen=True)
class Continuation(Tabular):
    """One continuation of a text."""

    text: str  # after the prompt, with a leading space if one belongs there
    num_tokens: int  # without the end token
    log_probability: float  # natural, of the whole continuation, end token included
    score: float  # by which answers are ranked, as in `Hypothesis`
    is_finished: bool  # whether the model wrote the end token; else it reached the limit


@dataclass(frozen=True)
class ContinuedText(Tabular):
    """A prompt and its continuations, best first."""

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
    number: int = 0


@dataclass(frozen=True)
class Generator(Pipeline[str, ContinuedText]):
    """Continues texts.

    A call with a text returns a `ContinuedText`; a call with a list, a list. Options are fields of
    `GeneratorSettings`. A text may be empty: the model then starts from [CLS] alone.

    Examples:
        >>> generate = Generator.load("gpt/")  # doctest: +SKIP
        >>> generate("The captain looked at", max_tokens=20).text  # doctest: +SKIP
        'The captain looked at the sea.'

    Attributes:
        loaded: the model and its tokenizer.
        spacing: where spaces go around punctuation in the output; `Spacing.fit` learns it from
            texts.
        options: how tokens are chosen.
    """

    loaded: TorchModel[BertLMHeadModel]
    spacing: Spacing = field(default_factory=Spacing)
    options: GeneratorSettings = field(default_factory=GeneratorSettings)

    loading_kind = LoadingSettings
    window_inputs = PROMPTS_AT_A_TIME

    @classmethod
    def build(cls, opened: OpenModel, loading: LoadingSettings) -> Self:
        """Load a left-to-right model."""
        kind = opened.checkpoint.config.get("model_type", "bert")
        if kind in FAMILIES and opened.is_bidirectional:
            way = " --model` it trains one" if kind == "bert" else "` trains a BERT"
            raise CheckpointError(
                f"{opened.folder}: the model is bidirectional, so it can't predict the next"
                f" word; `bertkit pretrain --objective causal{way} that can"
            )
        loaded = TorchModel.load(BertLMHeadModel, opened, loading.device)
        cast_whole(loaded.model, loading.precision, find_device(loaded.model))
        return cls(loaded)

    def stream_words(self, prompt: str, /, **options: Any) -> Iterator[str]:
        """Continue one text, yielding it word by word.

        Args:
            prompt: as in a call.
            options: as in a call, without beam search and for one answer.

        Yields:
            Pieces of the continuation. A word is held back until the next one starts, because more
            pieces may extend it, and punctuation for one word more, because the spaces around it
            depend on what follows. Joined, they equal the result of a call.

        Raises:
            InputError: as in a call.
            SettingsError: the options ask for beams or several answers.
        """
        chosen = self.with_options(**options).options
        ((_, ids, _),) = self.encode_window(list(self.read([prompt])))
        sequences = PromptSequences(self.loaded.model, self._pack([ids]))
        limits = self._limits([ids])
        written: list[int] = []
        num_shown = 0
        for token in stream(sequences, chosen, limits, DecodingSource(tuple(ids))):
            written.append(token)
            text = self._continuation_text(prompt, ids, written, is_open=True)
            if len(text) > num_shown:
                yield text[num_shown:]
                num_shown = len(text)
        yield self._continuation_text(prompt, ids, written)[num_shown:]

    def warm_up(self) -> None:
        """Continue two texts by a token or two."""
        self(list(SAMPLES), max_tokens=2)

    def change(self, changes: Mapping[str, Any]) -> Self:
        """Change options; a seed is for what is drawn."""
        changed = super().change(changes)
        check_seed(changed.options, changes.get("seed", 0))
        return changed

    def encode_window(self, inputs: list[NamedInput]) -> list[Prompt]:
        """Return each text with the ids of [CLS] and its pieces."""
        tokenizer, prompts = self.loaded.tokenizer, []
        pieces = tokenizer.piece_ids([named.value for named in inputs])
        for named, own in zip(inputs, pieces, strict=True):
            ids = [tokenizer.cls_id, *own]
            if len(ids) >= self.loaded.max_length:
                raise InputError(
                    f"{named.name} ({named.value[:40]!r}) has {pluralize(len(ids), 'token')}, and"
                    f" the model {self.loaded.limit}, generated text included; shorten it"
                )
            prompts.append(Prompt(named.value, ids, named.number))
        return prompts

    def count(self, encoded: Sequence[Prompt], computed: object = None) -> TextCounts:
        """Count the prompts and their tokens."""
        num_tokens = sum(len(prompt.ids) for prompt in encoded)
        return TextCounts(texts=len(encoded), tokens=num_tokens)

    def compute_window(self, encoded: Sequence[Prompt]) -> list[list[Hypothesis]]:
        """Continue a window of texts, in batches of similar length."""
        options, limit = self.options, self.loaded.max_length
        most = limit if options.max_tokens is None else options.max_tokens
        sizes = [min(limit, len(prompt.ids) + most) * options.num_rows for prompt in encoded]
        return compute_in_batches(encoded, sizes, TOKENS_AT_A_TIME, self._continue)

    def decode_window(
        self, encoded: Sequence[Prompt], computed: Sequence[Sequence[Hypothesis]]
    ) -> Iterator[ContinuedText]:
        """Turn token ids into texts."""
        for (text, ids, _), found in zip(encoded, computed, strict=True):
            answers = [
                Continuation(
                    text=self._continuation_text(text, ids, one.tokens),
                    num_tokens=len(one.tokens),
                    log_probability=one.log_probability,
                    score=one.score,
                    is_finished=one.is_finished,
                )
                for one in found
            ]
            yield ContinuedText(text, answers)

    def _continue(self, prompts: Sequence[Prompt]) -> list[list[Hypothesis]]:
        """Continue a batch of texts."""
        rows = [prompt.ids for prompt in prompts]
        sources = [DecodingSource(tuple(prompt.ids), prompt.number) for prompt in prompts]
        sequences = PromptSequences(self.loaded.model, self._pack(rows))
        return decode(sequences, self.options, self._limits(rows), sources)

    def _pack(self, rows: Sequence[Sequence[int]]) -> PackedBatch:
        device = self.loaded.model.encoder.embeddings.word.weight.device
        return PackedBatch.from_single(rows).to(device)

    def _limits(self, rows: Sequence[Sequence[int]]) -> DecodingLimits:
        tokenizer, num_scores = self.loaded.tokenizer, self.loaded.model.config.vocab_size
        suppressed = find_suppressed_tokens(tokenizer, tokenizer.sep_id, num_scores)
        most = [self.loaded.max_length - len(ids) for ids in rows]
        return DecodingLimits(tokenizer.sep_id, most, suppressed)

    def _continuation_text(
        self, prompt: str, ids: Sequence[int], written: Sequence[int], *, is_open: bool = False
    ) -> str:
        """Return the written text as it follows the prompt, with or without a leading space.

        If it `is_open`, text that further tokens could change is left out.
        """
        vocabulary = self.loaded.tokenizer.vocabulary
        pieces = [vocabulary[token] for token in (*ids, *written)]
        text = self.spacing.join(pieces, normalize=False)
        start = find_letter(text, sum(map(len, join_word_pieces(pieces[: len(ids)]))))
        stop = len(text)
        if (
            is_open
        ):  # pieces may extend the last word, on which spaces around a mark before it depend
            words = join_word_pieces(pieces)
            is_after_mark = len(words) > 1 and find_mark(words[-2]) is not None
            stop = find_letter(text, sum(map(len, words[: -2 if is_after_mark else -1])))
        text_after = unicodedata.normalize("NFC", text[start:stop])
        return text_after.lstrip() if not prompt or prompt[-1].isspace() else text_after


class WordStream(Generator):
    """Continues one text by a word each time that it is called with it, and by None at its end."""

    @cached_property
    def words(self) -> list[Iterator[str]]:
        """What is written of the text; empty before it is begun."""
        return []

    def count(self, encoded: Sequence[Prompt], computed: object = None) -> TextCounts:
        """Count the tokens of the prompt, which is read once."""
        return TextCounts() if self.words else super().count(encoded)

    def compute_window(self, encoded: Sequence[Prompt]) -> Any:
        """Write a word."""
        if not self.words:
            self.words.append(self.stream_words(encoded[0].text))
        return [next(self.words[0], None)]

    def decode_window(self, encoded: Sequence[Prompt], computed: Any) -> Any:
        """Return the word."""
        return computed

    def end(self) -> None:
        """Let go of what writes; from now on it gives None, in whichever thread it is called."""
        self.words[:] = [iter(())]


def find_letter(text: str, number: int) -> int:
    """Return the index in `text` after the first `number` characters that aren't spaces."""
    passed = 0
    for place, letter in enumerate(text):
        if passed >= number:
            return place
        passed += letter != " "
    return len(text)
