"""Encoding of texts and pairs for feature extraction, with character offsets of tokens."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, overload

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import InputError, NonFiniteError, SettingsError, pluralize
from bertkit.base.settings import validate
from bertkit.inference.embeddings.settings import FeatureSettings
from bertkit.inference.engines.choice import choose_engine
from bertkit.inference.engines.engine import Engine, resolve_layers
from bertkit.inference.loading import LoadedModel
from bertkit.inference.stream import NUL, TextCounts, cut_windows
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel
from bertkit.models.open_model import OpenModel
from bertkit.nn.packing import PackedBatch, plan_batches
from bertkit.tokenization.engine import Encoding
from bertkit.tokenization.tokenizer import Tokenizer, check_texts

TextOrPair: TypeAlias = str | tuple[str, str]

CHARS_PER_TOKEN = 64  # far more than any token has, apart from white space


@dataclass(frozen=True)
class PairEncoder:
    """Encodes and truncates texts and pairs, and counts problems found in them.

    Attributes:
        tokenizer: the model's tokenizer.
        max_length: maximum number of tokens, including special tokens; the longer text of a pair is
            cut first.
        has_pairs: whether the model has a second segment.
    """

    tokenizer: Tokenizer
    max_length: int
    has_pairs: bool

    def __call__(self, text: TextOrPair, counts: TextCounts) -> tuple[Encoding, bool]:
        """Encode one text or pair, and return whether it was truncated; any content is accepted."""
        parts = text if isinstance(text, tuple) else (text,)
        check_texts(parts)
        if len(parts) not in {1, 2}:
            raise InputError(
                f"expected a text or a pair of texts, got {pluralize(len(parts), 'text')}"
            )
        if len(parts) == 2 and not self.has_pairs:
            raise InputError("this model takes single texts only: its type_vocab_size is 1")
        encoding = self.tokenizer.encode(*map(self._head, parts))
        is_truncated = len(encoding) > self.max_length
        if is_truncated:
            encoding = self.tokenizer.encode(*map(self._head, parts), max_length=self.max_length)
        self._count(parts, encoding, counts)
        counts.truncated += is_truncated
        return encoding, is_truncated

    def _head(self, text: str) -> str:
        """Shorten a far too long text at white space, to one that still exceeds max_length."""
        end = text.find(" ", self.max_length * CHARS_PER_TOKEN)
        if end < 0 or len(self.tokenizer.piece_ids([text[:end]])[0]) <= self.max_length:
            return text
        return text[:end]

    def _count(self, parts: tuple[str, ...], encoding: Encoding, counts: TextCounts) -> None:
        """Update the counts for a text."""
        counts.texts += 1
        counts.tokens += len(encoding)
        counts.with_nul += any(NUL in part for part in parts)
        num_special = 1 + len(parts)
        num_unknown = encoding.ids.count(self.tokenizer.unk_id)
        counts.empty += len(encoding) == num_special
        counts.unknown_only += 0 < num_unknown == len(encoding) - num_special


Array = npt.NDArray[np.float32]

NUM_DEFAULT_LAYERS = 4
WINDOW_BYTES = 256 << 20  # features held in memory to be returned in order
WINDOW_TOKENS = 1 << 17  # so many encoded tokens take about 50 MB


@dataclass(frozen=True)
class FeaturePlan:
    """The features to extract from a model.

    Attributes:
        requested: layers as requested, possibly negative.
        layers: the same, counted from 0.
        combine: concat, sum, mean or none.
        hidden_size: number of features of one layer.
    """

    requested: tuple[int, ...]
    layers: tuple[int, ...]
    combine: str
    hidden_size: int

    @classmethod
    def build(cls, settings: FeatureSettings, config: BertConfig) -> Self:
        """Resolve the requested layers for a model."""
        num_layers = config.num_hidden_layers
        requested = settings.layers
        if requested is None:
            requested = tuple(range(-1, -1 - min(NUM_DEFAULT_LAYERS, num_layers), -1))
        layers = resolve_layers(requested, num_layers)
        if len(set(layers)) < len(layers):
            raise SettingsError(
                f"layers {requested} has duplicates: counted from 0, it is {layers}"
            )
        return cls(requested, layers, settings.combine, config.hidden_size)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a token's features."""
        if self.combine == "none":
            return (len(self.layers), self.hidden_size)
        return (self.hidden_size * (len(self.layers) if self.combine == "concat" else 1),)

    def join(self, states: Sequence[Float[Tensor, "tokens hidden"]]) -> Float[Tensor, "tokens ..."]:
        """Combine the hidden states of `layers` to features."""
        if self.combine == "concat":
            return torch.cat(list(states), dim=-1)
        stacked = torch.stack(list(states), dim=1)
        if self.combine == "none":
            return stacked
        return stacked.sum(dim=1) if self.combine == "sum" else stacked.mean(dim=1)


@dataclass(frozen=True)
class TextFeatures:
    """The features of one text or pair.

    Attributes:
        encoding: tokens with [CLS] and [SEP], their segments, and their offsets in the text.
        features: T_i, `[tokens, features]`, or `[tokens, layers, hidden]` if layers aren't
            combined; in the order of `encoding.tokens`.
        sequence: C, `[hidden]`.
        is_truncated: whether the end of the text was cut off.
    """

    encoding: Encoding
    features: Array
    sequence: Array
    is_truncated: bool


class FeatureExtractor:
    """Extracts hidden states of any layers.

    C is the pooler's output if the model has a pooler, else the last layer's hidden state of [CLS];
    `sequence_from` says which.

    Args:
        loaded: the model; its heads aren't used.
        opened: where it came from.

    Examples:
        >>> extract = FeatureExtractor.load("run/")  # doctest: +SKIP
        >>> extract("a cat sat", layers=[-1, -2], combine="mean").features.shape  # doctest: +SKIP
        (5, 256)
    """

    def __init__(self, loaded: LoadedModel[BertModel], opened: OpenModel) -> None:
        self._model, self._tokenizer = loaded.model, loaded.tokenizer
        self._max_length = loaded.max_length
        self._opened = opened.without_weights()
        self._last_engine: tuple[object, Engine] | None = None

    @classmethod
    def load(
        cls, path: str | Path | None = None, *, device: str = "auto", revision: str | None = None
    ) -> Self:
        """Load the encoder of any checkpoint; arguments and errors as in `LoadedModel.load`."""
        opened = OpenModel.open(path, revision=revision, bundled="vectors")
        return cls(LoadedModel.load(BertModel, opened, device), opened)

    @property
    def sequence_from(self) -> Literal["pooler", "[CLS]"]:
        """Whether C comes from the pooler or from the last layer's [CLS]."""
        return "[CLS]" if self._model.pooler is None else "pooler"

    @overload
    def __call__(self, texts: str | tuple[str, str], **settings: Any) -> TextFeatures: ...

    @overload
    def __call__(self, texts: list[TextOrPair], **settings: Any) -> list[TextFeatures]: ...

    def __call__(
        self, texts: TextOrPair | list[TextOrPair], **settings: Any
    ) -> TextFeatures | list[TextFeatures]:
        """Extract features of one text or pair, or of a list of them.

        Args:
            texts: a text, a tuple of two for a pair, or a list of them.
            settings: fields of `FeatureSettings`, such as `layers` and `combine`.
        """
        chosen = validate(FeatureSettings, settings, "features")
        if isinstance(texts, list):
            return list(self.stream(texts, chosen))
        return next(self.stream([texts], chosen))

    def stream(
        self,
        texts: Iterable[TextOrPair],
        settings: FeatureSettings | None = None,
        counts: TextCounts | None = None,
    ) -> Iterator[TextFeatures]:
        """Extract features of any number of texts, in their order and in bounded memory.

        Args:
            texts: texts, or tuples of two for pairs; read a window at a time.
            settings: layers, their combination and other settings.
            counts: updated before the features of a text are yielded.

        Raises:
            BertkitError: as in `__call__`.
        """
        if isinstance(texts, str):
            check_texts(texts)
        settings = settings or FeatureSettings()
        counts = TextCounts() if counts is None else counts
        plan = self.plan(settings)
        engine = self.find_engine(settings)
        encode = self._build_encoder(settings)
        max_tokens = min(WINDOW_BYTES // (4 * math.prod(plan.shape)), WINDOW_TOKENS)
        encoded = (encode(text, counts) for text in texts)
        for window in cut_windows(encoded, lambda text: len(text[0]), max_tokens):
            yield from self._extract(window, plan, engine)

    def plan(self, settings: FeatureSettings) -> FeaturePlan:
        """Resolve the settings for this model.

        Raises:
            SettingsError: the model has no such layer, or one is named twice.
        """
        return FeaturePlan.build(settings, self._model.config)

    def identity(self, settings: FeatureSettings) -> dict[str, Any]:
        """Return everything that features depend on; results store it with their features.

        This reads the model's files for their SHA-256, which takes a moment.
        """
        plan = self.plan(settings)
        return {
            "model": self._opened.name,
            "model_sha256": self._opened.sha256,
            "layers": plan.layers,
            "combine": plan.combine,
            "sequence_from": self.sequence_from,
            "max_length": self._build_encoder(settings).max_length,
            "precision": self.find_engine(settings).precision,
        }

    def find_engine(self, settings: FeatureSettings) -> Engine:
        """Return the engine for the requested layers and the last one, which C is computed from.

        Raises:
            SettingsError: the model has no such layer, or the engine can't run it.
            MissingExtraError: the chosen engine isn't installed.
        """
        last = self._model.config.num_hidden_layers
        layers = tuple(dict.fromkeys((*self.plan(settings).layers, last)))
        key = (settings.engine, settings.precision, layers)
        if self._last_engine is None or self._last_engine[0] != key:
            engine = choose_engine(settings.engine, self._model, layers, settings.precision)
            self._last_engine = (key, engine)
        return self._last_engine[1]

    def _build_encoder(self, settings: FeatureSettings) -> PairEncoder:
        config = self._model.config
        limit = config.max_position_embeddings
        max_length = settings.max_length or self._max_length
        if max_length > limit:
            raise SettingsError(f"max_length is {max_length}, and this model takes at most {limit}")
        return PairEncoder(self._tokenizer, max_length, has_pairs=config.type_vocab_size > 1)

    @torch.inference_mode()
    def _extract(
        self, window: Sequence[tuple[Encoding, bool]], plan: FeaturePlan, engine: Engine
    ) -> list[TextFeatures]:
        """Extract features of a window of texts, in batches of similar length."""
        found: dict[int, TextFeatures] = {}
        lengths = [len(encoding) for encoding, _ in window]
        for chosen in plan_batches(lengths, engine.tokens_per_batch):
            encodings = [window[index][0] for index in chosen]
            batch = PackedBatch.from_sequences(
                [encoding.ids for encoding in encodings],
                [encoding.token_type_ids for encoding in encodings],
            )
            states = dict(zip(engine.layers, engine(batch), strict=True))
            features = as_array(plan.join([states[layer] for layer in plan.layers]))
            sequences = as_array(self._read_sequences(states[max(states)], batch))
            starts = accumulate((0, *batch.lengths[:-1]))
            for index, start, sequence in zip(chosen, starts, sequences, strict=True):
                encoding, is_truncated = window[index]
                rows = features[start : start + len(encoding)]
                found[index] = TextFeatures(encoding, rows, sequence, is_truncated)
        return [found[index] for index in range(len(window))]

    def _read_sequences(
        self, last: Float[Tensor, "tokens hidden"], batch: PackedBatch
    ) -> Float[Tensor, "sequences hidden"]:
        """Return C of each sequence."""
        batch = batch.to(last.device)
        if self._model.pooler is None:
            return last[batch.first_tokens]
        sequences: Tensor = self._model.pooler(last, batch)
        return sequences


def as_array(features: Float[Tensor, "..."]) -> Array:
    """Convert features to NumPy; raise NonFiniteError if they aren't finite."""
    if not features.isfinite().all():
        raise NonFiniteError(
            "the model's features aren't finite; check the model with `bertkit inspect`"
        )
    array: Array = features.float().cpu().numpy()
    return array
