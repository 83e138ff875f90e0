"""The model that is looked into, and what one pass over one text leaves behind."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.base.errors import CheckpointError, InputError
from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.names import list_heads
from bertkit.inference.engines.choice import find_device
from bertkit.inference.loading import load_tokenizer
from bertkit.interpret.capture import AttentionHeads, capture_attention
from bertkit.models.bert.architectures import find_architecture
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.feature_based import BertFeatureBased
from bertkit.models.bert.fine_tuning import (
    BertForMultipleChoice,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    FineTunedBert,
)
from bertkit.models.bert.heads import (
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
)
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.saved import load_task
from bertkit.tasks.task import Task
from bertkit.tokenization.encoding import Encoding
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.device import choose_device

AnyBert = (
    BertModel
    | BertForPreTraining
    | BertForMaskedLM
    | BertForNextSentencePrediction
    | BertForSequenceClassification
    | BertForTokenClassification
    | BertForQuestionAnswering
    | BertForMultipleChoice
    | BertFeatureBased
)
MODELS: dict[str, type[AnyBert]] = {
    kind.__name__: kind
    for kind in (
        BertModel,
        BertForPreTraining,
        BertForMaskedLM,
        BertForNextSentencePrediction,
        BertForSequenceClassification,
        BertForTokenClassification,
        BertForQuestionAnswering,
        BertForMultipleChoice,
        BertFeatureBased,
    )
}


@dataclass(frozen=True, eq=False)
class Passage:
    """A text, or a pair of texts, as the model reads it.

    Attributes:
        text: the first text.
        pair: the second, if there is one.
        encoding: its tokens, with ids, segments and offsets into their text.
        words: for each token, the number of its word from 0; −1 for [CLS] and [SEP].
    """

    text: str
    pair: str | None
    encoding: Encoding
    words: tuple[int, ...]

    @property
    def tokens(self) -> list[str]:
        """The tokens, special ones included."""
        return list(self.encoding.tokens)

    def pack(self) -> PackedBatch:
        """The passage as a batch of its own, made anew: gradients can't use one of inference."""
        return PackedBatch.from_sequences([self.encoding.ids], [self.encoding.token_type_ids])


@dataclass(frozen=True, eq=False)
class Observation:
    """What one pass over one passage leaves behind.

    Attributes:
        passage: what was read.
        states: what the embeddings give, then what each layer gives.
        layers: the attention of each layer, the first one first.
    """

    passage: Passage
    states: list[Float[Tensor, "length hidden"]]
    layers: list[AttentionHeads]


@dataclass(frozen=True)
class Subject:
    """A model of any kind that is looked into, in evaluation, with its tokenizer.

    Attributes:
        name: what it is called in views: the last part of its path, or its id.
        model: the model, on its device.
        tokenizer: its tokenizer.
        task: what a fine-tuned model is for; None of any other.
    """

    name: str
    model: AnyBert
    tokenizer: Tokenizer
    task: Task[Any, Any] | None = None

    @classmethod
    def load(cls, path: str | Path, device: str = "auto", *, revision: str | None = None) -> Self:
        """Load a run of `bertkit pretrain`, a model folder of any task, or a model of the Hub.

        Args:
            path: the folder, or the id of a model of the Hub.
            device: auto, cpu, cuda or cuda:N.
            revision: a branch, tag or commit of a model of the Hub.

        Raises:
            BertkitError: it can't be loaded, as in `LoadedModel.load`.
        """
        checkpoint = open_checkpoint(resolve_model(path, revision=revision))
        heads = list_heads(checkpoint.tensors)
        architecture = find_architecture(checkpoint.config, heads, checkpoint.folder)
        model = MODELS[architecture].from_checkpoint(checkpoint).to(choose_device(device))
        tokenizer = load_tokenizer(checkpoint, model.config)
        is_fine_tuned = isinstance(model, FineTunedBert)
        task = load_task(checkpoint.folder, model.config, architecture) if is_fine_tuned else None
        name = Path(path).resolve().name if Path(path).exists() else str(path)
        return cls(name, model, tokenizer, task)

    def read(self, text: str, pair: str | None = None, *, read_mask: bool = False) -> Passage:
        """Cut a text, or a pair, into tokens.

        Args:
            text: the first text.
            pair: the second text.
            read_mask: read `[MASK]` as the mask token; without it, it is text.

        Raises:
            InputError: a text has no word, there are more tokens than the model takes, or there is
                a pair and the model takes single texts.
        """
        encoding = self.tokenizer.encode(text, pair, read_mask=read_mask)
        config = self.model.config
        for name, part in (("the text", text), ("the second text", pair)):
            if part is not None and not self.tokenizer.encode(part).ids[1:-1]:
                raise InputError(f"{name} is empty; give at least one word")
        if len(encoding.ids) > config.max_position_embeddings:
            raise InputError(
                f"the text has {len(encoding.ids):,} tokens, and the model takes"
                f" {config.max_position_embeddings}; shorten it"
            )
        if pair is not None and config.type_vocab_size < 2:
            raise InputError("this model takes single texts (type_vocab_size is 1), not pairs")
        return Passage(text, pair, encoding, number_words(encoding, self.tokenizer))

    @torch.inference_mode()
    def observe(self, passage: Passage) -> Observation:
        """Run the encoder once and keep what it computes.

        Raises:
            CheckpointError: hidden states aren't finite.
        """
        batch = passage.pack().to(find_device(self.model))
        with capture_attention(self.model.encoder) as captured:
            states = list(self.model.encoder.hidden_states(batch))
        if not states[-1].isfinite().all():
            raise CheckpointError(
                f"{self.name} gives hidden states that aren't finite; see `bertkit inspect`"
            )
        return Observation(passage, states, [layer.heads() for layer in captured])


def number_words(encoding: Encoding, tokenizer: Tokenizer) -> tuple[int, ...]:
    """For each token, the number of its word from 0; −1 for [CLS] and [SEP] around the texts."""
    words, number = [], -1
    for index, token_id in enumerate(encoding.ids):
        if index == 0 or (token_id == tokenizer.sep_id and encoding.offsets[index] == (0, 0)):
            words.append(-1)
            continue
        number += not tokenizer.is_continuation[token_id]
        words.append(max(number, 0))
    return tuple(words)
