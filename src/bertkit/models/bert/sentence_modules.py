"""A classifier of pooled tokens as modules of sentence-transformers: its vectors are the logits."""

from collections.abc import Mapping

from torch import Tensor

from bertkit.checkpoints.checkpoint import LazyTensor
from bertkit.checkpoints.sentence_transformers.folder import SentenceModel
from bertkit.checkpoints.sentence_transformers.modules import Dense, Pooling
from bertkit.checkpoints.transfer import CLASSIFIER
from bertkit.models.bert.config import FEATURE_HEAD, BertConfig
from bertkit.models.bert.feature_based import read_feature_head

BIAS = "classifier.bias"


def has_modules(config: BertConfig) -> bool:
    """Whether sentence-transformers has modules that compute this model's logits.

    Raises:
        SettingsError: `feature_head` is invalid.
    """
    if FEATURE_HEAD not in (config.model_extra or {}) or config.is_decoder:
        return False
    return read_feature_head(config).is_pooled


def describe_modules(
    config: BertConfig, tensors: Mapping[str, Tensor | LazyTensor], max_length: int
) -> SentenceModel | None:
    """Return the modules after the encoder; None if sentence-transformers has none for the head.

    Args:
        config: sizes and `feature_head`.
        tensors: the classifier's weight and bias, under these names.
        max_length: tokens of the longest text.
    """
    if not has_modules(config):
        return None
    pooling = Pooling(config.hidden_size, (read_feature_head(config).pooling,))
    weight, bias = (_make_lazy(tensors[name]) for name in (CLASSIFIER, BIAS))
    return SentenceModel((pooling, Dense(weight, bias, "identity")), max_length)


def _make_lazy(tensor: Tensor | LazyTensor) -> LazyTensor:
    if isinstance(tensor, LazyTensor):
        return tensor
    values = tensor.detach().cpu()
    return LazyTensor(tuple(values.shape), values.dtype, lambda: values)
