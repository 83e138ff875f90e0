"""Hidden states of chosen layers as features of texts and pairs, with offsets of their tokens."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import InputError, SettingsError, pluralize
from bertkit.data.problems import is_unknown
from bertkit.inference.embeddings.settings import FeatureSettings
from bertkit.inference.engines.choice import open_engine
from bertkit.inference.engines.engine import Engine, check_finite, resolve_layers
from bertkit.inference.loading import LoadedModel
from bertkit.inference.pipeline import NamedInput, Pipeline, compute_in_batches
from bertkit.inference.settings import EngineSettings
from bertkit.inference.stream import NUL, TextCounts, cut_windows
from bertkit.models.bert.config import ENCODER, BertConfig
from bertkit.models.open_model import OpenModel
from bertkit.nn.packed_ids import PackedIds
from bertkit.tokenization.encoding import Encoding
from bertkit.tokenization.tokenizer import check_texts

TextOrPair: TypeAlias = str | tuple[str, str]

CHARS_PER_TOKEN = 64  # far more than any token has, apart from white space


@dataclass(frozen=True)
class PairEncoder:
    """Encodes and truncates texts and pairs, and counts problems found in them."""

    loaded: LoadedModel
    max_length: int  # in tokens, special ones included; the longer text of a pair is cut first

    def __call__(self, text: TextOrPair) -> "EncodedFeatureText":
        """Encode one text or pair; any content is accepted."""
        tokenizer, parts = self.loaded.tokenizer, text if isinstance(text, tuple) else (text,)
        if len(parts) == 2:
            self.loaded.check_pairs()
        heads = list(map(self._head, parts))
        encoding = tokenizer.encode(*heads)
        is_truncated = len(encoding) > self.max_length
        if is_truncated:
            encoding = tokenizer.encode(*heads, max_length=self.max_length)
        num_tokens = len(encoding) - tokenizer.num_special(len(parts))
        num_unknown = encoding.ids.count(tokenizer.unk_id)
        counts = TextCounts(
            texts=1,
            tokens=len(encoding),
            with_nul=any(NUL in part for part in parts),
            text_tokens=num_tokens,
            unknown_tokens=num_unknown,
            empty=not num_tokens,
            unknown_only=is_unknown(num_unknown, num_tokens),
            truncated=is_truncated,
        )
        return EncodedFeatureText(encoding, is_truncated, counts)

    def _head(self, text: str) -> str:
        """Shorten a far too long text at white space, to one that still exceeds max_length."""
        end = text.find(" ", self.max_length * CHARS_PER_TOKEN)
        if end < 0 or len(self.loaded.tokenizer.piece_ids([text[:end]])[0]) <= self.max_length:
            return text
        return text[:end]


Array = npt.NDArray[np.float32]

NUM_DEFAULT_LAYERS = 4
WINDOW_BYTES = 256 << 20  # features held in memory to be returned in order
WINDOW_TOKENS = 1 << 17  # so many encoded tokens take about 50 MB


@dataclass(frozen=True)
class FeaturePlan:
    """The features to extract from a model."""

    requested: tuple[int, ...]  # possibly negative
    layers: tuple[int, ...]  # the same, counted from 0
    combine: str  # concat, sum, mean or none
    hidden_size: int  # features of one layer

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

    def join(self, states: Sequence[Array]) -> Array:
        """Combine the hidden states of `layers`, each `[tokens, hidden]`, to features."""
        if self.combine == "concat":
            return np.concatenate(states, axis=-1)
        stacked = np.stack(states, axis=1)
        if self.combine == "none":
            return stacked
        joined: Array = stacked.sum(axis=1) if self.combine == "sum" else stacked.mean(axis=1)
        return joined


@dataclass(frozen=True)
class TextFeatures:
    """The features of one text or pair."""

    encoding: Encoding  # with [CLS] and [SEP]
    features: Array  # T_i, `[tokens, features]`, or `[tokens, layers, hidden]` if not combined
    sequence: Array  # C, `[hidden]`
    is_truncated: bool  # whether the end of the text was cut off


@dataclass(frozen=True)
class EncodedFeatureText:
    """A text or pair as tokens, and its statistics."""

    encoding: Encoding
    is_truncated: bool
    counts: TextCounts

    def __len__(self) -> int:
        return len(self.encoding)


@dataclass(frozen=True)
class FeatureExtractor(Pipeline[TextOrPair, TextFeatures]):
    """Extracts hidden states of any layers.

    A call with a text, or a tuple of two for a pair, returns `TextFeatures`; a call with a list, a
    list. Options are fields of `FeatureSettings`, such as `layers` and `combine`. C is the pooler's
    output if the model has a pooler, else the last layer's hidden state of [CLS]; `sequence_from`
    says which.

    Examples:
        >>> extract = FeatureExtractor.load("run/")  # doctest: +SKIP
        >>> extract("a cat sat", layers=[-1, -2], combine="mean").features.shape  # doctest: +SKIP
        (5, 256)

    Attributes:
        loaded: what the model reads, with its tokenizer.
        engines: one, that of the last call.
        opened: where the model came from.
        options: which features are extracted.
    """

    loaded: LoadedModel
    engines: list[Engine] = field(repr=False)
    opened: OpenModel
    options: FeatureSettings = field(default_factory=FeatureSettings)

    bundled = "vectors"

    @classmethod
    def build(cls, opened: OpenModel, loading: EngineSettings) -> Self:
        """Load the encoder of any checkpoint."""
        engine = open_engine(opened, loading, ENCODER)
        return cls(LoadedModel.of(opened), [engine], opened.without_weights())

    @property
    def sequence_from(self) -> Literal["pooler", "[CLS]"]:
        """Whether C comes from the pooler or from the last layer's [CLS]."""
        return "pooler" if self.engine.has_pooler else "[CLS]"

    @property
    def plan(self) -> FeaturePlan:
        """The options, resolved for this model.

        Raises:
            SettingsError: the model has no such layer, or one is named twice.
        """
        return FeaturePlan.build(self.options, self.loaded.config)

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that features depend on; results store it with their features.

        This reads the model's files for their SHA-256, which takes a moment.
        """
        plan = self.plan
        return {
            "model": self.opened.name,
            "model_sha256": self.opened.sha256,
            "layers": plan.layers,
            "combine": plan.combine,
            "sequence_from": self.sequence_from,
            "max_length": self._build_encoder(self.options).max_length,
            "precision": self.engine.precision,
        }

    @property
    def engine(self) -> Engine:
        """The engine for the layers of the options and the last one, which C is computed from."""
        last = self.loaded.config.num_hidden_layers
        layers = tuple(dict.fromkeys((*self.plan.layers, last)))
        engine = self.engines[0]  # another thread may replace it
        if engine.layers != layers:
            engine = self.engines[0] = engine.change_layers(layers)
        return engine

    def change(self, changes: Mapping[str, Any]) -> Self:
        """Change options, if the model has as many positions."""
        changed = super().change(changes)
        self._build_encoder(changed.options)
        return changed

    def accept(self, named: NamedInput) -> NamedInput:
        """Return what is a text or a pair of texts."""
        parts = named.value if isinstance(named.value, tuple) else (named.value,)
        check_texts(parts)
        if len(parts) not in {1, 2}:
            raise InputError(
                f"expected a text or a pair of texts, got {pluralize(len(parts), 'text')}"
            )
        return named

    def encode_window(self, inputs: list[NamedInput]) -> list[EncodedFeatureText]:
        """Encode and truncate texts and pairs."""
        encode = self._build_encoder(self.options)
        return [encode(named.value) for named in inputs]

    def divide(self, encoded: list[EncodedFeatureText]) -> Iterator[list[EncodedFeatureText]]:
        """Divide a window if its features are too large to be held in memory."""
        max_tokens = min(WINDOW_BYTES // (4 * math.prod(self.plan.shape)), WINDOW_TOKENS)
        return cut_windows(encoded, len, max_tokens)

    def compute_window(self, encoded: list[EncodedFeatureText]) -> list[TextFeatures]:
        """Extract features, in batches of texts of similar length."""
        lengths = list(map(len, encoded))
        return compute_in_batches(encoded, lengths, self.engine.tokens_per_batch, self._extract)

    def count(self, encoded: list[EncodedFeatureText], computed: object = None) -> TextCounts:
        """Return the statistics of some texts."""
        counts = TextCounts()
        for one in encoded:
            counts.add(one.counts)
        return counts

    def _build_encoder(self, options: FeatureSettings) -> PairEncoder:
        return PairEncoder(self.loaded, self.loaded.choose_length(options.max_length))

    @np.errstate(over="ignore", invalid="ignore")  # `check_finite` tells
    def _extract(self, texts: Sequence[EncodedFeatureText]) -> list[TextFeatures]:
        """Extract features of a batch of texts."""
        encodings = [text.encoding for text in texts]
        plan, engine = self.plan, self.engine
        ids = PackedIds.from_sequences(
            [encoding.ids for encoding in encodings],
            [encoding.token_type_ids for encoding in encodings],
        )
        states = dict(zip(engine.layers, engine(ids), strict=True))
        features = plan.join([states[layer] for layer in plan.layers])
        last = states[max(states)]
        sequences = engine.pool(last, ids) if engine.has_pooler else last[ids.first_tokens]
        for values in (features, sequences):
            check_finite(values, "the model's features")
        starts = accumulate((0, *ids.lengths[:-1]))
        return [
            TextFeatures(
                text.encoding, features[start : start + len(text)], sequence, text.is_truncated
            )
            for text, start, sequence in zip(texts, starts, sequences, strict=True)
        ]
