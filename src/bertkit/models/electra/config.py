"""The sizes of an ELECTRA, under the names of `config.json`."""

from typing import ClassVar, Literal

from bertkit.models.bert.config import CLASSIFICATION, MULTIPLE_CHOICE, BertConfig, Rate, Size
from bertkit.models.electra.names import ELECTRA
from bertkit.nn.parts import EncoderParts, HeadParts


class ElectraConfig(BertConfig):
    """The architecture; the defaults are those of ELECTRA-Small.

    Attributes:
        embedding_size: features of the embeddings, which are projected to `hidden_size`.
        summary_last_dropout: before a classifier of choices, unless `classifier_dropout` is given.

    Source: Clark et al. 2020, section 3 and appendix A.
    """

    model_types = ("electra",)
    names: ClassVar = ELECTRA
    own_word_activation = "gelu"  # the exact one, whatever the encoder has

    model_type: str = "electra"
    embedding_size: Size = 128
    hidden_size: Size = 256
    num_attention_heads: Size = 4
    intermediate_size: Size = 1024
    summary_type: Literal["first"] = "first"
    summary_use_proj: Literal[True] = True
    summary_activation: Literal["gelu"] = "gelu"
    summary_last_dropout: Rate = 0.1

    @property
    def parts(self) -> EncoderParts:
        """As in `BertConfig`."""
        is_narrow = self.embedding_size != self.hidden_size
        return EncoderParts(embedding_size=self.embedding_size if is_narrow else None)

    def find_head(self, architecture: str) -> HeadParts | None:
        """As in `BertConfig`."""
        if architecture == MULTIPLE_CHOICE:
            return HeadParts(activation=self.summary_activation)
        if architecture == CLASSIFICATION:
            return HeadParts(activation="gelu", drops_first=True)
        return None

    def find_dropout(self, architecture: str) -> float:
        """As in `BertConfig`."""
        if architecture == MULTIPLE_CHOICE and self.classifier_dropout is None:
            return self.summary_last_dropout
        return super().find_dropout(architecture)
