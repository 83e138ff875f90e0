"""A loaded model to inspect, and the observations of one forward pass over one text."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import CheckpointError, InputError
from bertkit.inference.engines.choice import cast_whole, find_device
from bertkit.inference.engines.engine import check_finite
from bertkit.inference.loading import LoadedModel
from bertkit.inference.settings import PrecisionName
from bertkit.interpret.capture import AttentionHeads, capture_attention, widen
from bertkit.interpret.patterns import HeadPattern, find_patterns
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder, BertModel
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.models.bert.weights import without_memory
from bertkit.models.open_model import AnyBert, OpenModel
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.saved import load_task
from bertkit.tasks.task import Task
from bertkit.tokenization.encoding import Encoding
from bertkit.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class EncodedText:
    """A text, or a pair of texts, tokenized for the model."""

    text: str
    pair: str | None
    encoding: Encoding  # offsets are into the token's own text
    words: tuple[int, ...]  # word index of each token, from 0; −1 for [CLS] and [SEP]

    @property
    def tokens(self) -> list[str]:
        """The tokens, including special tokens."""
        return list(self.encoding.tokens)

    def pack(self) -> PackedBatch:
        """Return a new batch of this text; autograd can't use tensors of inference mode."""
        return PackedBatch.from_sequences([self.encoding.ids], [self.encoding.token_type_ids])


@dataclass(frozen=True, eq=False)
class NextWords:
    """The next-token predictions of a left-to-right model after the first token, the second, …."""

    log_probabilities: Float[Tensor, "places words"]
    ids: tuple[int, ...]  # the token ids that actually follow


@dataclass(frozen=True, eq=False)
class Observation:
    """The hidden states and attention of one forward pass over one text."""

    encoded: EncodedText
    states: list[Float[Tensor, "length hidden"]]  # of the embeddings, then of each layer
    layers: list[AttentionHeads]
    config: BertConfig  # of the encoder or decoder that computed them
    attended: EncodedText | None = None  # the text of the keys in cross-attention; else None
    next_words: NextWords | None = None  # None for models that predict none

    @property
    def is_causal(self) -> bool:
        """Whether a token attends only to itself and to earlier tokens."""
        return self.layers[0].is_causal

    @property
    def attended_tokens(self) -> list[str] | None:
        """The tokens of the keys in cross-attention; None in self-attention."""
        return None if self.attended is None else self.attended.tokens

    def find_patterns(self, layer: int) -> list[HeadPattern]:
        """Return the attention pattern of each head of a layer, from 1."""
        weights, tokens = self.layers[layer - 1].weights, self.encoded.tokens
        return find_patterns(weights, tokens, self.attended_tokens, is_causal=self.is_causal)


class LoadsFromFolder(ABC):
    """Base of the inspected models, which are loaded from a folder or the Hub."""

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


@dataclass(frozen=True)
class InspectedModel(LoadsFromFolder):
    """A BERT of any kind to inspect, in evaluation mode, with its tokenizer.

    Attributes:
        name: its name in views: the last part of its path, or its id.
        model: the model, on its device.
        tokenizer: its tokenizer.
        task: the task of a fine-tuned model; None for any other model.
        opened: where it came from; None for a model made in memory.
    """

    name: str
    model: AnyBert
    tokenizer: Tokenizer
    task: Task[Any, Any] | None = None
    opened: OpenModel | None = None

    @classmethod
    def _load(cls, opened: OpenModel, device: str, precision: PrecisionName) -> Self:
        if opened.is_encoder_decoder:
            raise CheckpointError(
                f"{opened.folder} is an encoder-decoder, and this needs a BERT; `bertkit view`"
                " and `bertkit.AttentionView` show its attention"
            )
        loaded = LoadedModel.load(opened.kind, opened, device)
        model = loaded.model
        cast_whole(model, precision, find_device(model))
        task = None
        if isinstance(model, FineTunedBert):
            task = load_task(opened.folder, model.config, opened.architecture)
        return cls(opened.title, model, loaded.tokenizer, task, loaded.opened)

    @classmethod
    def of(cls, opened: OpenModel, encoder: BertEncoder) -> Self:
        """Inspect an encoder that something else computes, too; it has no head here."""
        with without_memory():
            model = BertModel(opened.config, has_pooler=False)
        model.encoder = encoder
        return cls(opened.title, model, opened.tokenizer, opened=opened)

    @property
    def loaded(self) -> LoadedModel[Any]:
        """The model with its tokenizer, for predictions."""
        return LoadedModel(self.model, self.tokenizer, self.opened)

    def read(self, text: str, pair: str | None = None, *, read_mask: bool = False) -> EncodedText:
        """Tokenize a text, or a pair of texts.

        Args:
            text: the first text.
            pair: the second text.
            read_mask: whether `[MASK]` is the mask token; otherwise it is ordinary text.

        Raises:
            InputError: a text is empty, there are more tokens than the model takes, or a pair was
                given to a model that takes single texts.
        """
        encoding = self.tokenizer.encode(text, pair, read_mask=read_mask)
        for name, part in (("the text", text), ("the second text", pair)):
            if part is not None and not self.tokenizer.encode(part).ids[1:-1]:
                raise InputError(f"{name} is empty; give at least one word")
        self.loaded.check_text("the text", len(encoding.ids), is_empty=False)
        if pair is not None:
            self.loaded.check_pairs()
        return EncodedText(text, pair, encoding, number_words(encoding, self.tokenizer))

    @torch.inference_mode()
    def observe(self, encoded: EncodedText) -> Observation:
        """Run the encoder once and return its hidden states and attention.

        Raises:
            NonFiniteError: hidden states aren't finite.
        """
        batch = encoded.pack().to(find_device(self.model))
        with capture_attention(self.model.encoder) as captured:
            states = list(map(widen, self.model.encoder.hidden_states(batch)))
        check_finite(states[-1], f"the hidden states of {self.name}")
        layers = [layer.heads() for layer in captured]
        next_words = self._find_next_words(encoded, states[-1])
        return Observation(encoded, states, layers, self.model.config, next_words=next_words)

    def _find_next_words(
        self, encoded: EncodedText, tokens: Float[Tensor, "length hidden"]
    ) -> NextWords | None:
        """Return a left-to-right model's next-token predictions for all tokens but the last."""
        if not isinstance(self.model, BertLMHeadModel):
            return None
        weight = self.model.encoder.embeddings.word.weight
        scores = self.model.score_words(tokens[:-1].to(weight.dtype))
        return NextWords(
            find_log_probabilities(self.name, scores, self.tokenizer),
            tuple(encoded.encoding.ids[1:]),
        )


def find_log_probabilities(
    name: str, scores: Float[Tensor, "places entries"], tokenizer: Tokenizer
) -> Float[Tensor, "places words"]:
    """Return the log probabilities of the vocabulary's entries, in float32.

    There may be more rows of logits than vocabulary entries.
    """
    check_finite(scores, f"the scores of the head of {name}")
    logarithms: Tensor = scores.float().log_softmax(dim=-1)[:, : tokenizer.vocab_size]
    return logarithms


def number_words(encoding: Encoding, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the word index of each token, from 0; −1 for [CLS] and [SEP] around the texts."""
    words, number = [], -1
    for index, token_id in enumerate(encoding.ids):
        if index == 0 or (token_id == tokenizer.sep_id and encoding.offsets[index] == (0, 0)):
            words.append(-1)
            continue
        number += not tokenizer.is_continuation[token_id]
        words.append(max(number, 0))
    return tuple(words)
