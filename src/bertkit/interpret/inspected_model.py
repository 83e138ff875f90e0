"""Loaded models whose attention can be observed; read `InspectedModel` first."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch

from bertkit.base.errors import InputError, SettingsError
from bertkit.base.wings import INSPECTED_MODELS, load_object
from bertkit.inference.engines.torch_engine import cast_whole, check_finite_tensor, find_device
from bertkit.inference.settings import PrecisionName
from bertkit.inference.torch_model import TorchModel
from bertkit.interpret.ablation import HeadName, ablate, check_heads, count_layer, parse_heads
from bertkit.interpret.capture import capture_attention, widen
from bertkit.interpret.observation import (
    EncodedText,
    Observation,
    PredictedWords,
    find_log_probabilities,
    number_words,
)
from bertkit.interpret.settings import ViewSettings
from bertkit.models.bert.encoder import BertEncoder, BertModel
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.models.bert.heads import WordScoringBert
from bertkit.models.bert.pretrained import PretrainedBert
from bertkit.models.bert.weights import without_memory
from bertkit.models.open_model import OpenModel
from bertkit.tasks.saved import load_task
from bertkit.tasks.task import AnyTask
from bertkit.tokenization.tokenizer import Tokenizer


class AnyInspected(ABC):
    """Base of the inspected models, which are loaded from a folder or the Hub.

    Attributes:
        name: its name in views: the last part of its path, or its id.
        tokenizer: its tokenizer.
    """

    name: str
    tokenizer: Tokenizer

    @classmethod
    def load(
        cls,
        model: str | Path | OpenModel,
        device: str = "auto",
        *,
        revision: str | None = None,
        precision: PrecisionName = "auto",
    ) -> Self:
        """Load a run of `bertkit pretrain`, a model folder of any task, or a model of the Hub."""
        return cls._load(OpenModel.open(model, revision=revision), device, precision)

    @classmethod
    @abstractmethod
    def _load(cls, opened: OpenModel, device: str, precision: PrecisionName) -> Self:
        """Load an open model."""

    @abstractmethod
    def observe_all(
        self, text: str, pair: str | None, settings: ViewSettings
    ) -> Sequence[Observation]:
        """Observe all attentions of the model in one pass over a text, as settings say.

        Raises:
            SettingsError: a setting selects something that the model doesn't have.
            InputError: a text is empty or too long, or there is no such token.
        """

    @property
    def recorded_name(self) -> str:
        """Its name in records."""
        return self.name


@dataclass(frozen=True)
class InspectedModel(AnyInspected):
    """A BERT of any kind to inspect, in evaluation mode, with its tokenizer.

    Attributes:
        model: the model, on its device.
        task: the task of a fine-tuned model; None for any other model.
        opened: where it came from; None for a model made in memory.
    """

    name: str
    model: PretrainedBert
    tokenizer: Tokenizer
    task: AnyTask | None = None
    opened: OpenModel | None = None

    @classmethod
    def _load(cls, opened: OpenModel, device: str, precision: PrecisionName) -> Self:
        loaded = TorchModel.load(opened.kind, opened, device)
        model = loaded.model
        cast_whole(model, precision, find_device(model))
        task = None
        if isinstance(model, FineTunedBert):
            task = load_task(opened.folder, model.config, opened.architecture)
        return cls(opened.title, model, loaded.tokenizer, task, loaded.opened)

    @classmethod
    def of(cls, opened: OpenModel, encoder: BertEncoder) -> Self:
        """Inspect an encoder that something else computes, too; it has no head here."""
        with without_memory():  # nor does it take the time of making layers
            model = BertModel(opened.config.model_copy(update={"num_hidden_layers": 0}))
        model.config, model.encoder, model.pooler = opened.config, encoder, None
        return cls(opened.title, model, opened.tokenizer, opened=opened)

    @property
    def recorded_name(self) -> str:
        """Its name in records."""
        return self.opened.name if self.opened else self.name

    @property
    def loaded(self) -> TorchModel[Any]:
        """The model with its tokenizer, for predictions."""
        return TorchModel.in_memory(self.model, self.tokenizer, self.opened)

    @property
    def fills_words(self) -> bool:
        """Whether it has a masked-LM head."""
        return isinstance(self.model, WordScoringBert) and not self.model.word_offset

    def read(self, text: str, pair: str | None = None) -> EncodedText:
        """Tokenize a text, or a pair of texts, in which the mask's text is the mask token.

        Raises:
            InputError: a text is empty, there are more tokens than the model takes, or a pair was
                given to a model that takes single texts.
        """
        tokenizer, texts = self.tokenizer, [text] if pair is None else [text, pair]
        encoding = tokenizer.encode(text, pair, read_mask=True)
        lengths = [len(ids) for ids in tokenizer.piece_ids(texts, read_mask=True)]
        for name, length in zip(("the text", "the second text"), lengths, strict=False):
            if not length:
                raise InputError(f"{name} is empty; give at least one word")
        self.loaded.check_text("the text", len(encoding.ids), is_empty=False)
        if pair is not None:
            self.loaded.check_pairs()
        num_first = None if pair is None else tokenizer.find_starts(*lengths)[1]
        words = number_words(encoding, tokenizer)
        tokens = [
            tokenizer.describe_piece(id_, begins_text=word >= 0 > before)
            for id_, word, before in zip(encoding.ids, words, (-1, *words), strict=False)
        ]
        legible = replace(encoding, tokens=tokens)
        return EncodedText(text, pair, legible, words, num_first, tokenizer.special)

    @torch.inference_mode()
    def observe(self, encoded: EncodedText, without: Sequence[HeadName] = ()) -> Observation:
        """Run the encoder once, without some heads, and return its hidden states and attention.

        Raises:
            NonFiniteError: hidden states aren't finite.
        """
        batch = encoded.pack().to(find_device(self.model))
        with ablate(self.model, without), capture_attention(self.model.encoder) as captured:
            states = list(map(widen, self.model.encoder.hidden_states(batch)))
        check_finite_tensor(states[-1], f"the hidden states of {self.name}")
        predicted, model = None, self.model
        if isinstance(model, WordScoringBert) and (offset := model.word_offset):
            dtype = model.encoder.embeddings.word.weight.dtype
            scores = model.score_words(states[-1][:-offset].to(dtype))
            logarithms = find_log_probabilities(self.name, scores, self.tokenizer)
            predicted = PredictedWords(logarithms, tuple(encoded.encoding.ids[offset:]))
        return Observation(
            encoded,
            states,
            [layer.heads() for layer in captured],
            self.model.config,
            predicted=predicted,
            without=tuple(without),
        )

    def observe_all(
        self, text: str, pair: str | None, settings: ViewSettings
    ) -> Sequence[Observation]:
        """Observe the encoder's attention."""
        if settings.attention is not None:
            raise SettingsError(
                f"attention is for models with several, and {self.name} has only self-attention;"
                " leave it out"
            )
        config = self.model.config
        without = [] if settings.without is None else parse_heads(settings.without, config)
        layer = count_layer(settings.layer, config)
        check_heads([HeadName(layer or 1, settings.head or 1)], config)
        encoded = self.read(text, pair)
        if settings.token is not None:
            encoded.find(settings.token)
        return [self.observe(encoded, without)]


def load_inspected_model(
    path: str | Path,
    device: str = "auto",
    *,
    revision: str | None = None,
    precision: PrecisionName = "auto",
) -> AnyInspected:
    """Load a model of any kind; arguments and errors as in `AnyInspected.load`."""
    opened = OpenModel.open(path, revision=revision)
    kind: type[AnyInspected] = InspectedModel
    if not opened.is_bert:
        kind = load_object(INSPECTED_MODELS[str(opened.checkpoint.config["model_type"])])
    return kind.load(opened, device, precision=precision)
