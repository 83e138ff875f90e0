"""The sizes of an MPNet, under the names of `config.json`."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from bertkit.models.bert.config import CLASSIFICATION, BertConfig, Epsilon, Size, TokenId
from bertkit.models.mpnet.names import MPNET
from bertkit.nn.parts import EncoderParts, HeadParts


class MPNetConfig(BertConfig):
    """The architecture; the defaults are those of MPNet-base.

    There are no segments, and positions count from 2, as in RoBERTa.

    Attributes:
        relative_attention_num_buckets: buckets of distances, each with a bias for each head.

    Source: Song et al. 2020, section 4.1.
    """

    model_types = ("mpnet",)
    names: ClassVar = MPNET
    own_word_activation = "gelu"  # the exact one, whatever the encoder has

    model_type: str = "mpnet"
    vocab_size: Size = 30527
    max_position_embeddings: Size = 514
    type_vocab_size: Annotated[Literal[0], Field(exclude=True)] = 0
    layer_norm_eps: Epsilon = 1e-5
    pad_token_id: TokenId = 1
    relative_attention_num_buckets: Literal[32] = 32  # whatever it says, transformers takes 32

    @property
    def parts(self) -> EncoderParts:
        """As in `BertConfig`."""
        return EncoderParts(position_offset=2, num_buckets=self.relative_attention_num_buckets)

    def find_head(self, architecture: str) -> HeadParts | None:
        """As in `BertConfig`."""
        if architecture == CLASSIFICATION:
            return HeadParts(drops_first=True)
        return super().find_head(architecture)
