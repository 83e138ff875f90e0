"""Generate texts with an encoder-decoder: one output per input, in order and bounded memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple, Self, overload

import torch

from bertkit.base.errors import CheckpointError
from bertkit.base.settings import Settings
from bertkit.inference.decoding.beam import DecodingLimits, DecodingSource, Hypothesis, Sequences
from bertkit.inference.decoding.search import decode
from bertkit.inference.decoding.settings import DecodingSettings, override_decoding
from bertkit.inference.engines.choice import cast_whole
from bertkit.inference.generation.generator import SourceSequences, find_suppressed_tokens
from bertkit.inference.generation.settings import KindName, Seq2SeqSettingsFile, read_seq2seq_file
from bertkit.inference.settings import PrecisionName
from bertkit.inference.stream import NUM_SPECIAL, check_each, cut_windows, encode_ahead
from bertkit.models.open_model import OpenModel
from bertkit.models.seq2seq.model import EncoderDecoderModel
from bertkit.nn.key_value_cache import count_room
from bertkit.nn.packing import PackedBatch, plan_batches
from bertkit.reports.notebook import ResultList, Row, Tabular, show_metrics
from bertkit.tokenization.detokenization import Spacing
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.device import choose_device
from bertkit.training.lifecycle import read_metrics

TOKENS_PER_BATCH = {"cpu": 4096, "cuda": 65536}
# Decoding takes far longer than encoding, so windows are this many times smaller to show progress.
WINDOW_SHARE = 8
# Tokens that a text's output adds to its cost in a batch, per `USUAL_ROWS` rows (beams or answers).
WRITTEN_TOKENS, USUAL_ROWS = 32, 5
# On a GPU, cached tokens per token of a batch: at most 131,072 in all, whose keys and values take
# 10 GB for BERT-Base. While the cache doubles its size, the old and the new buffers both exist.
KEPT_PER_TOKEN = 2
# Without `max_tokens`, output stops at MOST_TIMES × source tokens + MOST_MORE, or at `min_tokens`
# and the end token, whichever is longer, in case a model never writes the end token.
MOST_TIMES, MOST_MORE = 3, 20

Texts = list[str] | tuple[str, ...]  # not Sequence[str], which includes str


@dataclass(frozen=True)
class GeneratedText(Tabular):
    """The output of a model for one text.

    Attributes:
        text: the best answer; empty for an empty input.
        score: the ranking score of answers, as in `Hypothesis`; 0 for an empty input.
        is_finished: whether the model wrote the end token; otherwise it reached the length limit.
        is_cut: whether the input was truncated.
        others: further answers if requested, best first.
    """

    text: str
    score: float
    is_finished: bool
    is_cut: bool
    others: tuple["GeneratedText", ...] = ()

    def as_rows(self) -> Sequence[Row]:
        """Return a row for each answer, the best first."""
        return [one.as_row() for one in (self, *self.others)]


@dataclass
class GenerationCounts:
    """Statistics of inputs and outputs.

    Attributes:
        texts: all inputs.
        tokens_read: source tokens, [CLS] and [SEP] included.
        tokens_written: tokens of the best answers, without end tokens.
        empty: inputs without a token; their answer is empty.
        cut: inputs that were truncated.
        unfinished: answers that reached the length limit.
    """

    texts: int = 0
    tokens_read: int = 0
    tokens_written: int = 0
    empty: int = 0
    cut: int = 0
    unfinished: int = 0

    def add(self, other: "GenerationCounts") -> None:
        """Add the counts of another object to these."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class SourceWindow(NamedTuple):
    """Some texts as token ids; `first` is the number of the first one among all texts."""

    first: int
    ids: list[list[int]]
    is_cut: list[bool]


@dataclass(frozen=True)
class Seq2SeqGenerator:
    """Generates one text for each input text.

    Attributes:
        model: in evaluation mode.
        tokenizer: the tokenizer of source and target.
        saved: length limits, spacing, and the default decoding settings.
        metrics: of the held-out pairs it was trained with; none, if its folder has none.
    """

    model: EncoderDecoderModel
    tokenizer: Tokenizer
    saved: Seq2SeqSettingsFile
    metrics: Mapping[str, float] = field(default_factory=dict)
    spacing: Spacing = field(init=False)

    kind: ClassVar[KindName | None] = None  # any

    def __post_init__(self) -> None:
        object.__setattr__(self, "spacing", Spacing.from_dict(self.saved.spacing))

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        device: str = "auto",
        revision: str | None = None,
        precision: PrecisionName = "auto",
    ) -> Self:
        """Load a folder of `bertkit finetune translate` or `bertkit finetune summarize`.

        Args:
            path: the folder, or the id of such a model of the Hub.
            device: auto, cpu, cuda or cuda:N.
            revision: a branch, tag or commit of a model of the Hub.
            precision: of the weights and matrix products, as in `cast_whole`.
        """
        opened = OpenModel.open(path, revision=revision)
        folder = opened.folder
        saved = read_seq2seq_file(folder)
        if cls.kind is not None and saved.kind != cls.kind:
            raise CheckpointError(
                f"{folder} was trained to {saved.kind}, not to {cls.kind}; use `bertkit"
                f" {saved.kind}`"
            )
        place = choose_device(device)
        model = EncoderDecoderModel.from_pretrained(opened).to(place)
        config = model.config
        limits = (config.encoder.max_position_embeddings, config.decoder.max_position_embeddings)
        if saved.max_source_length > limits[0] or saved.max_target_length > limits[1]:
            raise CheckpointError(
                f"{folder} reads {saved.max_source_length:,} tokens and writes"
                f" {saved.max_target_length:,}, and its model takes {limits[0]:,} and"
                f" {limits[1]:,}; its files don't belong together"
            )
        cast_whole(model, precision, place)
        return cls(model, opened.tokenizer, saved, read_metrics(folder))

    def _repr_html_(self) -> str:
        """Show the metrics in a notebook."""
        return show_metrics(type(self).__name__, self.metrics)

    @overload
    def __call__(self, texts: str, settings: DecodingSettings | None = None) -> GeneratedText: ...

    @overload
    def __call__(
        self, texts: Texts, settings: DecodingSettings | None = None
    ) -> list[GeneratedText]: ...

    def __call__(
        self, texts: str | Texts, settings: DecodingSettings | None = None
    ) -> GeneratedText | list[GeneratedText]:
        """Generate the output for one text, or for several.

        Args:
            texts: one text, or a list of them.
            settings: decoding settings; by default those saved with the model.
        """
        if isinstance(texts, str):
            return next(self.stream([texts], settings))
        return ResultList(self.stream(texts, settings))

    def stream(
        self,
        texts: Iterable[str],
        settings: DecodingSettings | None = None,
        counts: GenerationCounts | None = None,
    ) -> Iterator[GeneratedText]:
        """Generate outputs for any number of texts, in input order and bounded memory.

        Args:
            texts: consumed a window at a time.
            settings: decoding settings; by default those saved with the model.
            counts: updated before each window's answers are yielded.
        """
        settings = settings or self.saved.decoding
        first = 0
        for window in encode_ahead(cut_windows(check_each(texts), measure), self._encode):
            numbered = window._replace(first=first)
            first += len(window.ids)
            answers = list(self._generate(numbered, settings, counts))
            yield from answers

    def settings_with(self, changes: Settings) -> DecodingSettings:
        """Return the saved decoding settings with some of them overridden.

        Args:
            changes: `DecodingOverrides`, or `DecodingSettings` whose explicitly set fields apply.
        """
        return override_decoding(self.saved.decoding, changes)

    def _encode(self, texts: list[str]) -> SourceWindow:
        """Tokenize texts and truncate them to the length that the model was trained on."""
        room = self.saved.max_source_length - NUM_SPECIAL
        pieces = self.tokenizer.piece_ids(texts)
        start, end = [self.tokenizer.cls_id], [self.tokenizer.sep_id]
        return SourceWindow(
            first=0,
            ids=[[*start, *each[:room], *end] if each else [] for each in pieces],
            is_cut=[len(each) > room for each in pieces],
        )

    def _generate(
        self, window: SourceWindow, settings: DecodingSettings, counts: GenerationCounts | None
    ) -> Iterator[GeneratedText]:
        """Yield the answers of a window, in order."""
        found: dict[int, list[Hypothesis]] = {}
        read = [number for number, ids in enumerate(window.ids) if ids]
        costs = [self._count_cost(len(window.ids[number]), settings) for number in read]
        for batch in plan_batches(costs, TOKENS_PER_BATCH[self._device.type]):
            chosen = [read[index] for index in batch]
            answers = self._decode(window, chosen, settings)
            found.update(zip(chosen, answers, strict=True))
        if counts is not None:
            counts.add(count_window(window, found))
        for number, is_cut in enumerate(window.is_cut):
            yield self._make_answer(found.get(number, []), is_cut=is_cut)

    def _count_cost(self, num_read: int, settings: DecodingSettings) -> int:
        """Return a text's cost in a batch: computed tokens or, on a GPU, cache size if larger."""
        cost = num_read + count_written(settings)
        if self._device.type == "cpu":
            return cost
        most = limit_written(num_read, settings, self.saved.max_target_length)
        return max(cost, count_rows(settings) * count_room(most) // KEPT_PER_TOKEN)

    def _decode(
        self, window: SourceWindow, chosen: Sequence[int], settings: DecodingSettings
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of some texts of a window."""
        ids = [window.ids[number] for number in chosen]
        most = self.saved.max_target_length
        limits = DecodingLimits(
            end_id=self.tokenizer.sep_id,
            max_tokens=[limit_written(len(each), settings, most) for each in ids],
            suppressed_ids=self._suppressed_ids,
        )
        sources = [DecodingSource(number=window.first + number) for number in chosen]
        batch = PackedBatch.from_single(ids).to(self._device)
        return decode(self._start(batch), settings, limits, sources)

    def _start(self, sources: PackedBatch) -> Sequences:
        """Start one target for each source."""
        return SourceSequences(self.model, sources)

    def _make_answer(self, hypotheses: Sequence[Hypothesis], *, is_cut: bool) -> GeneratedText:
        """Convert the hypotheses of a text, best first, to an answer."""
        answers = [
            GeneratedText(self.join(one.tokens), one.score, one.is_finished, is_cut)
            for one in hypotheses
        ]
        if not answers:
            return GeneratedText("", 0.0, is_finished=True, is_cut=is_cut)
        best = answers[0]
        return GeneratedText(best.text, best.score, best.is_finished, is_cut, tuple(answers[1:]))

    def join(self, ids: Iterable[int]) -> str:
        """Convert token ids to text."""
        return self.spacing.join([self.tokenizer.vocabulary[id_] for id_ in ids])

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def _num_scores(self) -> int:
        return self.model.config.decoder.vocab_size

    @cached_property
    def _suppressed_ids(self) -> tuple[int, ...]:
        return find_suppressed_tokens(self.tokenizer, self.tokenizer.sep_id, self._num_scores)


def measure(text: str) -> int:
    """Return the size of a text for cutting windows."""
    return WINDOW_SHARE * len(text)


def count_written(settings: DecodingSettings) -> int:
    """Return the part of a text's batch cost that its output adds; it grows with its rows."""
    return WRITTEN_TOKENS * max(1, count_rows(settings) // USUAL_ROWS)


def count_rows(settings: DecodingSettings) -> int:
    """Return the number of sequences decoded in parallel for each text."""
    return max(settings.beams, settings.num_answers)


def limit_written(num_read: int, settings: DecodingSettings, most: int) -> int:
    """Return the maximum number of output tokens for a text.

    Args:
        num_read: number of source tokens.
        settings: whose `max_tokens`, if set, replaces the default limit.
        most: the maximum target length of the model.
    """
    usual = max(MOST_TIMES * num_read + MOST_MORE, settings.min_tokens + 1)
    return min(most, settings.max_tokens or usual)


def count_window(window: SourceWindow, found: dict[int, list[Hypothesis]]) -> GenerationCounts:
    """Count the inputs and outputs of a window."""
    best = [hypotheses[0] for hypotheses in found.values()]
    return GenerationCounts(
        texts=len(window.ids),
        tokens_read=sum(map(len, window.ids)),
        tokens_written=sum(len(one.tokens) for one in best),
        empty=sum(not ids for ids in window.ids),
        cut=sum(window.is_cut),
        unfinished=sum(not one.is_finished for one in best),
    )
