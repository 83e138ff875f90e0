"""Heads that only bertkit has: on several layers, or on the mean or maximum of the tokens.

Source: Devlin et al. 2018, section 5.3, for several layers of a frozen encoder; Reimers and
Gurevych 2019, "Sentence-BERT", section 3, for means and maxima of the tokens.
"""

from collections.abc import Mapping
from typing import Literal, Self

import torch
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, model_validator
from torch import Tensor, nn

from bertkit.base.errors import SettingsError
from bertkit.base.settings import validate
from bertkit.checkpoints.checkpoint import LazyTensor
from bertkit.checkpoints.sentence_modules import Dense, Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel
from bertkit.checkpoints.transfer import CLASSIFIER
from bertkit.models.bert.config import FEATURE_HEAD, BertConfig
from bertkit.models.bert.encoder import BertEncoder, summary_tokens
from bertkit.models.bert.fine_tuning import ClassifierBert, Scored, classifier_dropout
from bertkit.models.bert.weights import initialize
from bertkit.nn.packing import PackedBatch, reduce_tokens

LAYERS = {"last": (-1,), "last_four": (-4, -3, -2, -1)}


class FeatureHead(BaseModel):
    """A head of bertkit's own; `feature_head` in the model's `config.json`.

    Pooling says what represents a sequence: its summary token ([CLS]; the last token of a causal
    encoder), or the mean or the maximum of all its tokens.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    layers: Literal["last", "last_four"]  # whose hidden states are concatenated
    lstm_hidden: None = None  # files have the key; `BertConfig` refuses any other value
    # logits per token, per sequence, or one per sequence (multiple choice)
    scores: Scored
    pooling: Literal["cls", "mean", "max"] = "cls"

    @model_validator(mode="after")
    def _pools_only_sequences(self) -> Self:
        if self.pooling != "cls" and self.scores == "token":
            raise ValueError("pooling is for scores per sequence")
        return self

    @property
    def is_pooled(self) -> bool:
        """Whether it is a linear layer on pooled tokens, which other programs compute too."""
        return (self.layers, self.scores) == ("last", "sequence")


def read_feature_head(config: BertConfig) -> FeatureHead:
    """Read and check `feature_head`."""
    head = validate(FeatureHead, (config.model_extra or {}).get(FEATURE_HEAD), FEATURE_HEAD)
    if len(LAYERS[head.layers]) > config.num_hidden_layers:
        raise SettingsError(
            f"{FEATURE_HEAD} needs the last four layers, and the encoder has only"
            f" {config.num_hidden_layers}; set its layers to last"
        )
    return head


class BertFeatureBased(ClassifierBert):
    """Logits from hidden states, as `config.feature_head` says."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.head = read_feature_head(config)
        self.scored = self.head.scores
        self.encoder = BertEncoder(config)
        width = config.hidden_size * len(self.head_layers)
        self.dropout = classifier_dropout(config)
        num_scores = 1 if self.scored == "choice" else config.num_labels
        self.classifier = nn.Linear(width, num_scores)
        initialize(self, config.initializer_range)

    @property
    def head_layers(self) -> tuple[int, ...]:
        """As in `FineTunedBert`."""
        return LAYERS[self.head.layers]

    def states(self, batch: PackedBatch) -> Float[Tensor, "tokens features"]:
        """As in `FineTunedBert`: the layers' states, concatenated."""
        states = list(self.encoder.hidden_states(batch))
        return torch.cat([states[layer] for layer in self.head_layers], dim=1)

    def summarize(
        self, tokens: Float[Tensor, "tokens features"], batch: PackedBatch
    ) -> Float[Tensor, "rows inputs"]:
        """As in `FineTunedBert`: the tokens, or each sequence's pooled ones."""
        if self.scored == "token":
            return tokens
        if self.head.pooling == "cls":
            return tokens[summary_tokens(self.config, batch)]
        return reduce_tokens(tokens, batch, self.head.pooling)

    def score(self, rows: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows ..."]:
        """As in `FineTunedBert`."""
        scores = super().score(rows)
        return scores[:, 0] if self.scored == "choice" else scores


BIAS = "classifier.bias"


def has_modules(config: BertConfig) -> bool:
    """Whether sentence-transformers has modules that compute this model's logits."""
    if FEATURE_HEAD not in (config.model_extra or {}) or config.is_decoder:
        return False
    return read_feature_head(config).is_pooled


def describe_modules(
    config: BertConfig,
    tensors: Mapping[str, Tensor | LazyTensor],
    max_length: int,
    *,
    reads_pairs: bool,
) -> SentenceModel | None:
    """Return the modules after the encoder; None if sentence-transformers has none for the head.

    The tensors are the classifier's weight and bias, under these names. In sentence-transformers a
    CrossEncoder reads pairs and nothing else, so single texts get a SentenceTransformer.
    """
    if not has_modules(config):
        return None
    pooling = Pooling(config.hidden_size, (read_feature_head(config).pooling,))
    weight, bias = (
        tensor if isinstance(tensor, LazyTensor) else LazyTensor.of(tensor)
        for tensor in (tensors[CLASSIFIER], tensors[BIAS])
    )
    head = Dense(weight, bias, "identity", is_scoring=reads_pairs)
    return SentenceModel((pooling, head), max_length, is_scoring=reads_pairs)
