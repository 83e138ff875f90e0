"""The sizes of a DistilBERT, under the names of `config.json`."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from bertkit.models.bert.config import QUESTION_ANSWERING, TAGGING, BertConfig, Rate
from bertkit.models.distilbert.names import CLASSIFIERS, DISTILBERT
from bertkit.nn.parts import HeadParts


class DistilBertConfig(BertConfig):
    """The architecture; the defaults are those of DistilBERT-base.

    There are no segments and no pooler; classifiers have a layer of their own in its place.

    Attributes:
        seq_classif_dropout: dropout before a classifier of sequences or choices, unless
            `classifier_dropout` is given.
        qa_dropout: dropout before the layer that finds answers.

    Source: Sanh et al. 2019, section 3.
    """

    model_types = ("distilbert",)
    names: ClassVar = DISTILBERT
    their_keys: ClassVar = {
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
        "hidden_act": "activation",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
    }

    model_type: str = "distilbert"
    num_hidden_layers: Annotated[int, Field(ge=1, le=256)] = 6
    type_vocab_size: Annotated[Literal[0], Field(exclude=True)] = 0
    layer_norm_eps: Annotated[float, Field(ge=1e-12, le=1e-12, exclude=True)] = 1e-12
    seq_classif_dropout: Rate = 0.2
    qa_dropout: Rate = 0.1

    def find_head(self, architecture: str) -> HeadParts | None:
        """As in `BertConfig`."""
        return HeadParts(activation="relu") if architecture in CLASSIFIERS else None

    def find_dropout(self, architecture: str) -> float:
        """As in `BertConfig`."""
        if architecture == QUESTION_ANSWERING:
            return self.qa_dropout
        if self.classifier_dropout is not None or architecture == TAGGING:
            return super().find_dropout(architecture)
        return self.seq_classif_dropout
