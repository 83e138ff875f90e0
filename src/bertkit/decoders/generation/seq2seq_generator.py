"""Generate texts with an encoder-decoder: one output per input, in order and bounded memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, ClassVar, NamedTuple, Self

import torch

from bertkit.base.errors import CheckpointError
from bertkit.checkpoints.run_folder import read_metrics
from bertkit.decoders.decoding.search import decode
from bertkit.decoders.decoding.sequences import (
    DecodingLimits,
    DecodingSource,
    Hypothesis,
    Sequences,
)
from bertkit.decoders.decoding.settings import (
    DecodingOverrides,
    DecodingSettings,
    override_decoding,
)
from bertkit.decoders.detokenization import Spacing
from bertkit.decoders.generation.cached_sequences import SourceSequences, find_suppressed_tokens
from bertkit.decoders.generation.settings import KindName, Seq2SeqSettingsFile, read_seq2seq_file
from bertkit.decoders.key_value_cache import count_room
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.inference.engines.torch_engine import cast_whole
from bertkit.inference.pipeline import SAMPLES, NamedInput, Pipeline, compute_in_batches
from bertkit.inference.settings import LoadingSettings, take_settings
from bertkit.inference.stream import WINDOW_CHARS, InputCounts
from bertkit.models.open_model import OpenModel
from bertkit.nn.packing import PackedBatch
from bertkit.reports.notebook import Row, Tabular, show_metrics
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.device import choose_device

TOKENS_PER_BATCH = {"cpu": 4096, "cuda": 65536}
# Tokens that a text's output adds to its cost in a batch, per `USUAL_ROWS` rows (beams or answers).
WRITTEN_TOKENS, USUAL_ROWS = 32, 5
# On a GPU, cached tokens per token of a batch: at most 131,072 in all, whose keys and values take
# 10 GB for BERT-Base. While the cache doubles its size, the old and the new buffers both exist.
KEPT_PER_TOKEN = 2
# Without `max_tokens`, output stops at MOST_TIMES × source tokens + MOST_MORE, or at `min_tokens`
# and the end token, whichever is longer, in case a model never writes the end token.
MOST_TIMES, MOST_MORE = 3, 20


@dataclass(frozen=True)
class GeneratedText(Tabular):
    """The output of a model for one text; the best answer, empty for an empty input."""

    text: str
    score: float  # by which answers are ranked, as in `Hypothesis`; 0 for an empty input
    is_finished: bool  # whether the model wrote the end token; else it reached the length limit
    is_cut: bool  # whether the input was truncated
    others: tuple["GeneratedText", ...] = ()  # further answers if requested, best first

    def as_rows(self) -> Sequence[Row]:
        """Return a row for each answer, the best first."""
        return [one.as_row() for one in (self, *self.others)]


@dataclass
class GenerationCounts(InputCounts):
    """Statistics of inputs and outputs."""

    texts: int = 0
    tokens: int = 0  # of the sources, [CLS] and [SEP] included
    tokens_written: int = 0  # of the best answers, without end tokens
    empty: int = 0  # inputs without a token; their answer is empty
    truncated: int = 0  # inputs that were truncated
    unfinished: int = 0  # answers that reached the length limit
    text_tokens: int = 0  # of the sources, without special tokens
    unknown_tokens: int = 0  # of these, [UNK]


class SourceWindow(NamedTuple):
    """Some texts as token ids, with the number of each among all texts."""

    numbers: list[int]
    ids: list[list[int]]
    is_cut: list[bool]

    @classmethod
    def join(cls, several: Sequence[Self]) -> Self:
        """Join tokenized texts, each of which keeps its number."""
        return cls(*(list(chain.from_iterable(part)) for part in zip(*several, strict=True)))


@dataclass(frozen=True)
class Seq2SeqGenerator(Pipeline[str, GeneratedText]):
    """Generates one text for each input text; the options are decoding settings."""

    model: EncoderDecoderModel
    tokenizer: Tokenizer
    saved: Seq2SeqSettingsFile
    options: DecodingSettings
    metrics: Mapping[str, float] = field(default_factory=dict)  # of held-out pairs, or none

    kind: ClassVar[KindName | None] = None  # any
    loading_kind = LoadingSettings
    window_chars = WINDOW_CHARS // 8  # writing takes far longer than reading

    @classmethod
    def build(cls, opened: OpenModel, loading: LoadingSettings) -> Self:
        """Load a folder of `bertkit finetune translate` or `bertkit finetune summarize`."""
        folder = opened.folder
        saved = read_seq2seq_file(folder)
        if cls.kind is not None and saved.kind != cls.kind:
            raise CheckpointError(
                f"{folder} was trained to {saved.kind}, not to {cls.kind}; use `bertkit"
                f" {saved.kind}`"
            )
        place = choose_device(loading.device)
        model = EncoderDecoderModel.from_pretrained(opened).to(place)
        config = model.config
        limits = (config.encoder.max_position_embeddings, config.decoder.max_position_embeddings)
        if saved.max_source_length > limits[0] or saved.max_target_length > limits[1]:
            raise CheckpointError(
                f"{folder} reads {saved.max_source_length:,} tokens and writes"
                f" {saved.max_target_length:,}, and its model takes {limits[0]:,} and"
                f" {limits[1]:,}; its files don't belong together"
            )
        cast_whole(model, loading.precision, place)
        return cls(model, opened.tokenizer, saved, saved.decoding, read_metrics(folder))

    def _repr_html_(self) -> str:
        """Show the metrics in a notebook."""
        return show_metrics(type(self).__name__, self.metrics)

    @cached_property
    def spacing(self) -> Spacing:
        """Where spaces go in what is written."""
        return Spacing.from_dict(self.saved.spacing)

    def warm_up(self) -> None:
        """Write a token or two for two texts."""
        self(list(SAMPLES), max_tokens=2)

    def change(self, changes: Mapping[str, Any]) -> Self:
        """Change options as `override_decoding` does."""
        given = take_settings(DecodingOverrides, changes, type(self).__name__)
        return replace(self, options=override_decoding(self.options, given))

    def encode_window(self, inputs: list[NamedInput]) -> SourceWindow:
        """Tokenize texts and truncate them to the length that the model was trained on."""
        room = self.saved.max_source_length - self.tokenizer.num_special()
        pieces = self.tokenizer.piece_ids([named.value for named in inputs])
        return SourceWindow(
            numbers=[named.number for named in inputs],
            ids=[self.tokenizer.join(each[:room])[0] if each else [] for each in pieces],
            is_cut=[len(each) > room for each in pieces],
        )

    def compute_window(self, encoded: SourceWindow) -> list[list[Hypothesis]]:
        """Return the hypotheses of each text of a window; none for an empty one."""
        read, costs = [number for number, ids in enumerate(encoded.ids) if ids], []
        num_rows = self.options.num_rows
        for length in (len(encoded.ids[number]) for number in read):
            cost = length + WRITTEN_TOKENS * max(1, num_rows // USUAL_ROWS)
            if self._device.type != "cpu":  # the size of the cache, if that is larger
                most = limit_written(length, self.options, self.saved.max_target_length)
                cost = max(cost, num_rows * count_room(most) // KEPT_PER_TOKEN)
            costs.append(cost)
        found = compute_in_batches(
            read, costs, TOKENS_PER_BATCH[self._device.type], partial(self._decode, encoded)
        )
        by_number = dict(zip(read, found, strict=True))
        return [by_number.get(number, []) for number in range(len(encoded.ids))]

    def decode_window(
        self, encoded: SourceWindow, computed: list[list[Hypothesis]]
    ) -> Iterator[GeneratedText]:
        """Turn the answers of a window into texts."""
        for is_cut, hypotheses in zip(encoded.is_cut, computed, strict=True):
            answers = [
                GeneratedText(self.join(one.tokens), one.score, one.is_finished, is_cut)
                for one in hypotheses
            ]
            best, *others = answers or [GeneratedText("", 0.0, is_finished=True, is_cut=is_cut)]
            yield replace(best, others=tuple(others))

    def count(
        self, encoded: SourceWindow, computed: Sequence[Sequence[Hypothesis]] = ()
    ) -> GenerationCounts:
        """Count the inputs and outputs of a window."""
        num_special = self.tokenizer.num_special()
        best = [hypotheses[0] for hypotheses in computed if hypotheses]
        return GenerationCounts(
            texts=len(encoded.ids),
            tokens=sum(map(len, encoded.ids)),
            tokens_written=sum(len(one.tokens) for one in best),
            empty=sum(not ids for ids in encoded.ids),
            truncated=sum(encoded.is_cut),
            unfinished=sum(not one.is_finished for one in best),
            text_tokens=sum(len(ids) - num_special for ids in encoded.ids if ids),
            unknown_tokens=sum(ids.count(self.tokenizer.unk_id) for ids in encoded.ids),
        )

    def _decode(self, window: SourceWindow, chosen: Sequence[int]) -> list[list[Hypothesis]]:
        """Return the hypotheses of some texts of a window."""
        ids = [window.ids[number] for number in chosen]
        most, settings = self.saved.max_target_length, self.options
        end_id = self.tokenizer.sep_id
        limits = DecodingLimits(
            end_id=end_id,
            max_tokens=[limit_written(len(each), settings, most) for each in ids],
            suppressed_ids=find_suppressed_tokens(self.tokenizer, end_id, self.num_scores),
        )
        sources = [DecodingSource(number=window.numbers[number]) for number in chosen]
        batch = PackedBatch.from_single(ids).to(self._device)
        return decode(self.start(batch), settings, limits, sources)

    def start(self, sources: PackedBatch) -> Sequences:
        """Start one target for each source."""
        return SourceSequences(self.model, sources)

    def join(self, ids: Iterable[int]) -> str:
        """Convert token ids to text."""
        return self.spacing.join([self.tokenizer.vocabulary[id_] for id_ in ids])

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def num_scores(self) -> int:
        """Number of scores of a next token."""
        return self.model.config.decoder.vocab_size


def limit_written(num_read: int, settings: DecodingSettings, most: int) -> int:
    """Return the maximum number of output tokens for a text of `num_read` source tokens.

    The settings' `max_tokens`, if set, replaces the default limit, up to the model's, `most`.
    """
    usual = max(MOST_TIMES * num_read + MOST_MORE, settings.min_tokens + 1)
    return min(most, settings.max_tokens or usual)


class Translator(Seq2SeqGenerator):
    """Translates texts with a model of `bertkit finetune translate`."""

    kind: ClassVar[KindName | None] = "translate"
