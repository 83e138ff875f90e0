"""The published BERT architectures: the heads that each needs, and its tensor shapes."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from torch import nn

from bertkit.base.errors import CheckpointError
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder, BertModel, Pooler
from bertkit.models.bert.feature_based import BertFeatureBased
from bertkit.models.bert.fine_tuning import (
    BertForMultipleChoice,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from bertkit.models.bert.heads import (
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertLMHeadModel,
    MaskedLMHead,
)
from bertkit.models.bert.weights import without_memory

FEATURE_BASED = BertFeatureBased.__name__
CAUSAL = BertLMHeadModel.__name__
AnyBert = (
    BertModel
    | BertForPreTraining
    | BertForMaskedLM
    | BertLMHeadModel
    | BertForNextSentencePrediction
    | BertForSequenceClassification
    | BertForTokenClassification
    | BertForQuestionAnswering
    | BertForMultipleChoice
    | BertFeatureBased
)


class ModelClass(NamedTuple):
    """The class of an architecture, and the heads that it needs."""

    kind: type[AnyBert]
    heads: frozenset[str]


# The most heads first: a config that names no architecture gets the first that fits.
ARCHITECTURES: dict[str, ModelClass] = {
    kind.__name__: ModelClass(kind, frozenset(heads))
    for kind, heads in (
        (BertForPreTraining, ("pooler", "masked_lm", "next_sentence")),
        (BertForNextSentencePrediction, ("pooler", "next_sentence")),
        (BertForMaskedLM, ("masked_lm",)),
        (BertForSequenceClassification, ("pooler", "classifier")),
        (BertForMultipleChoice, ("pooler", "classifier")),
        (BertForTokenClassification, ("classifier",)),
        (BertForQuestionAnswering, ("qa_outputs",)),
        (BertLMHeadModel, ("masked_lm",)),  # only where the config says is_decoder
        (BertFeatureBased, ("classifier",)),  # only by name; transformers refuses it
        (BertModel, ()),
    )
}
# Never chosen for a config with is_decoder, whose masked LM head belongs to `CAUSAL`.
BOTH_WAYS = frozenset({"BertForPreTraining", "BertForNextSentencePrediction", "BertForMaskedLM"})


def find_architecture(config: Mapping[str, Any], heads: Collection[str], source: object) -> str:
    """Return the class that a config names if heads and direction fit, else the first that fits.

    Raises:
        CheckpointError: `architectures` isn't a list of names.
    """
    names = config.get("architectures") or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CheckpointError(
            f"{source}: architectures must be a list of names, and is {names!r:.80}"
        )
    other_way = BOTH_WAYS if config.get("is_decoder") is True else {CAUSAL}
    fitting = [
        name
        for name, (_, needed) in ARCHITECTURES.items()
        if needed <= set(heads) and name not in other_way
    ]
    return next((name for name in names[:1] if name in fitting), fitting[0])


def expected_shapes(
    config: BertConfig, architecture: str, heads: Collection[str]
) -> dict[str, tuple[int, ...]]:
    """Return bertkit's tensor names and shapes of an encoder with heads, allocating no memory.

    Args:
        architecture: decides between one logit per choice and one per label.
    """
    if architecture == FEATURE_BASED:
        with without_memory():
            states = BertFeatureBased(config).state_dict()
        return {name: tuple(tensor.shape) for name, tensor in states.items()}
    size = config.hidden_size
    num_logits = 1 if architecture == "BertForMultipleChoice" else config.num_labels
    model = nn.Module()
    with without_memory():
        model.encoder = BertEncoder(config)
        parts = {
            "pooler": Pooler(config),
            "masked_lm": MaskedLMHead(config),
            "next_sentence": nn.Linear(size, 2),
            "classifier": nn.Linear(size, num_logits),
            "qa_outputs": nn.Linear(size, 2),
        }
    for name in heads:
        model.add_module(name, parts[name])
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
