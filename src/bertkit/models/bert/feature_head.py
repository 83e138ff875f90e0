"""What a head on hidden states reads and scores: `feature_head` in a model's `config.json`.

`feature_based` computes it.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from bertkit.base.errors import SettingsError
from bertkit.base.settings import validate
from bertkit.checkpoints.checkpoint import LazyTensor
from bertkit.checkpoints.sentence_modules import Dense, Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel
from bertkit.checkpoints.transfer import CLASSIFIER
from bertkit.models.bert.config import FEATURE_HEAD, BertConfig, Scored

LAYERS = {"last": (-1,), "last_four": (-4, -3, -2, -1)}
BIAS = "classifier.bias"


class FeatureHead(BaseModel):
    """A head of bertkit's own.

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
    def _pools_only_sequences(self) -> "FeatureHead":
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


def has_modules(config: BertConfig) -> bool:
    """Whether sentence-transformers has modules that compute this model's logits."""
    if FEATURE_HEAD not in (config.model_extra or {}) or config.is_decoder:
        return False
    return read_feature_head(config).is_pooled


def describe_modules(
    config: BertConfig, tensors: Mapping[str, LazyTensor], max_length: int, *, reads_pairs: bool
) -> SentenceModel | None:
    """Return the modules after the encoder; None if sentence-transformers has none for the head.

    The tensors are the classifier's weight and bias, under these names. In sentence-transformers a
    CrossEncoder reads pairs and nothing else, so single texts get a SentenceTransformer.
    """
    if not has_modules(config):
        return None
    pooling = Pooling(config.hidden_size, (read_feature_head(config).pooling,))
    head = Dense(tensors[CLASSIFIER], tensors[BIAS], "identity", is_scoring=reads_pairs)
    return SentenceModel((pooling, head), max_length, is_scoring=reads_pairs)
