"""Heads that only bertkit has: on several layers, or on the mean or maximum of the tokens.

Source: Devlin et al. 2018, section 5.3, for several layers of a frozen encoder; Reimers and
Gurevych 2019, "Sentence-BERT", section 3, for means and maxima of the tokens.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder, build_dropout, summary_tokens
from bertkit.models.bert.feature_head import LAYERS, read_feature_head
from bertkit.models.bert.fine_tuning import FineTunedBert
from bertkit.models.bert.weights import initialize
from bertkit.nn.packing import PackedBatch, reduce_tokens


class BertFeatureBased(FineTunedBert):
    """Logits from hidden states, as `config.feature_head` says."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.head = read_feature_head(config)
        self.scored = self.head.scores
        self.encoder = BertEncoder(config)
        width = config.hidden_size * len(self.head_layers)
        self.dropout = build_dropout(config, type(self).__name__)
        num_scores = 1 if self.scored == "choice" else config.num_labels
        self.classifier = nn.Linear(width, num_scores)
        initialize(self, config)

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
