"""The sizes of a RoBERTa, under the names of `config.json`."""

from typing import ClassVar

from bertkit.models.bert.config import CLASSIFICATION, BertConfig, Epsilon, Size, TokenId
from bertkit.models.roberta.names import ROBERTA
from bertkit.nn.parts import EncoderParts, HeadParts


class RobertaConfig(BertConfig):
    """The architecture; the defaults are those of RoBERTa-base.

    A text has one segment, so the table of segments has one row; positions count from 2, behind the
    id of padding; the head of a classifier has dropout before its dense layer, too.

    Source: Liu et al. 2019, section 4.
    """

    model_types = ("roberta", "xlm-roberta", "camembert")
    names: ClassVar = ROBERTA
    own_word_activation = "gelu"  # the exact one, whatever the encoder has

    model_type: str = "roberta"
    vocab_size: Size = 50265
    max_position_embeddings: Size = 514
    type_vocab_size: Size = 1
    layer_norm_eps: Epsilon = 1e-5
    pad_token_id: TokenId = 1

    @property
    def parts(self) -> EncoderParts:
        """As in `BertConfig`."""
        return EncoderParts(position_offset=self.pad_token_id + 1)

    def find_head(self, architecture: str) -> HeadParts | None:
        """As in `BertConfig`."""
        if architecture == CLASSIFICATION:
            return HeadParts(drops_first=True)
        return super().find_head(architecture)
