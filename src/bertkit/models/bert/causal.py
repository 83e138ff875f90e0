"""BERT as a left-to-right language model: a causal encoder with the masked LM head.

Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training"; Devlin
et al. 2018, section 5.1 ("LTR & No NSP").
"""

from jaxtyping import Float, Int
from torch import Tensor

from bertkit.base.errors import SettingsError
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder
from bertkit.models.bert.heads import MaskedLMHead, WordScoringBert
from bertkit.models.bert.pretrained import PaddingMask
from bertkit.models.bert.weights import initialize
from bertkit.nn.attention import TokenBatch
from bertkit.nn.packing import PackedBatch, pad


class BertLMHeadModel(WordScoringBert):
    """A left-to-right language model: predicts the next word at each token.

    Args:
        config: the sizes; `is_decoder` must be true.

    Raises:
        SettingsError: `is_decoder` is false.
    """

    may_be_causal = True

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        if not config.is_decoder:
            raise SettingsError(
                "BertLMHeadModel is a left-to-right model; its config needs is_decoder=True"
            )
        self.encoder = BertEncoder(config)
        self.masked_lm = MaskedLMHead(config)
        initialize(self, config.initializer_range)

    def next_scores(
        self, batch: TokenBatch, positions: Int[Tensor, " chosen"] | None = None
    ) -> Float[Tensor, "chosen vocabulary"]:
        """Return logits of the next word at these positions of the packed batch, or at all."""
        tokens = self.encoder(batch)
        return self.score_words(tokens if positions is None else tokens.index_select(0, positions))

    def next_loss(
        self,
        batch: PackedBatch,
        positions: Int[Tensor, " chosen"],
        labels: Int[Tensor, " chosen"],
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Return the sum of the cross-entropies, and the number of correct predictions."""
        return self.words_loss(self.encoder(batch).index_select(0, positions), labels)

    def forward_packed(
        self, batch: PackedBatch, mask: PaddingMask
    ) -> Float[Tensor, "batch length vocabulary"]:
        """Return `next_scores` at all positions, zeros at padding."""
        return pad(self.next_scores(batch), mask)
