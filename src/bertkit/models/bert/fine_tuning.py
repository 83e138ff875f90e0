"""The encoder with a fine-tuning head, one model for each head; the tasks define the losses.

`scores` takes a packed batch, `forward` a padded one. `head_scores` is the part after the encoder,
for hidden states computed elsewhere.

Source: Devlin et al. 2018, section 4; multiple choice: section 4.4.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from bertkit.base.errors import InputError
from bertkit.models.bert.config import BertConfig, Scored
from bertkit.models.bert.encoder import BertEncoder, Pooler, build_dropout, build_pooler
from bertkit.models.bert.pretrained import PaddingMask, PretrainedBert, check_shapes
from bertkit.models.bert.weights import initialize
from bertkit.nn.dropout import Dropout
from bertkit.nn.packing import PackedBatch, pad


class FineTunedBert(PretrainedBert):
    """Base of the models below: an encoder, and a head on its hidden states."""

    encoder: BertEncoder
    dropout: Dropout
    scored: Scored  # what has a row of logits
    last: ClassVar[str] = "classifier"  # the last linear layer of the head

    def forward_packed(self, batch: PackedBatch, mask: PaddingMask) -> Any:
        """Return `scores`, those of tokens with zeros at padding."""
        scores = self.scores(batch)
        return pad(scores, mask) if self.scored == "token" else scores

    def scores(self, batch: PackedBatch) -> Float[Tensor, "rows ..."]:
        """Return the head's logits, a row for each sequence or each token."""
        return self.head_scores(self.states(batch), batch)

    @property
    def head_layers(self) -> tuple[int, ...]:
        """The layers whose hidden states the head reads, concatenated; -1 is the last."""
        return (-1,)

    def states(self, batch: PackedBatch) -> Float[Tensor, "tokens features"]:
        """Return the hidden states that the head reads."""
        states: Tensor = self.encoder(batch)
        return states

    def head_scores(
        self, tokens: Float[Tensor, "tokens features"], batch: PackedBatch
    ) -> Float[Tensor, "rows ..."]:
        """Return the head's logits for hidden states of `head_layers`."""
        return self.score(self.summarize(tokens, batch))

    def summarize(
        self, tokens: Float[Tensor, "tokens features"], batch: PackedBatch
    ) -> Float[Tensor, "rows inputs"]:
        """Return what the head's dropout and last linear layer read: a row for each result."""
        raise NotImplementedError

    def score(self, rows: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows ..."]:
        """Return the logits of the rows of `summarize`."""
        scores: Tensor = self.last_linear(self.dropout(rows))
        return scores

    @property
    def last_linear(self) -> nn.Linear:
        """The last linear layer of the head."""
        linear: nn.Linear = getattr(self, self.last)
        return linear

    def count_operations(self, batch: PackedBatch) -> float:
        """Count a training step's operations in the encoder; those of the head are few."""
        return self.encoder.count_operations(batch)


class PooledBert(FineTunedBert):
    """Base of the models with a head on C; the last layer computes only the tokens C needs."""

    pooler: Pooler

    def __init__(self, config: BertConfig, num_scores: int) -> None:
        super().__init__(config)
        self.encoder = BertEncoder(config)
        self.add_module("pooler", build_pooler(config, type(self).__name__))
        self.dropout = build_dropout(config, type(self).__name__)
        self.classifier = nn.Linear(config.hidden_size, num_scores)
        initialize(self, config)

    def scores(self, batch: PackedBatch) -> Float[Tensor, "sequences ..."]:
        """Return the head's logits for each sequence."""
        return self.score(self.pooler.read(self.encoder, batch))

    def summarize(
        self, tokens: Float[Tensor, "tokens hidden"], batch: PackedBatch
    ) -> Float[Tensor, "sequences hidden"]:
        """Return C of each sequence."""
        pooled: Tensor = self.pooler(tokens, batch)
        return pooled

    def count_operations(self, batch: PackedBatch) -> float:
        """As in `FineTunedBert`."""
        only_summaries = not self.pooler.reads_mean
        return self.encoder.count_operations(batch, only_summaries=only_summaries)


class TokenBert(FineTunedBert):
    """Base of the models with a head on each T_i; in some families, with a dense layer first."""

    scored = "token"

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.encoder = BertEncoder(config)
        self.pooler = build_pooler(config, type(self).__name__)
        self.dropout = build_dropout(config, type(self).__name__)

    def summarize(
        self, tokens: Float[Tensor, "tokens hidden"], batch: PackedBatch
    ) -> Float[Tensor, "tokens hidden"]:
        """As in `FineTunedBert`."""
        del batch
        return tokens if self.pooler is None else self.pooler.pool(tokens)


class BertForSequenceClassification(PooledBert):
    """Sequence classification: `config.num_labels` logits for each sequence, from its C."""

    scored = "sequence"

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config, config.num_labels)


class BertForTokenClassification(TokenBert):
    """Token classification: `config.num_labels` logits for each token, from its T_i."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        initialize(self, config)


@dataclass(frozen=True)
class QuestionAnsweringOutput:
    """The output of `BertForQuestionAnswering`, padded like its input."""

    # of each token as the answer's first; zeros at padding
    start_logits: Float[Tensor, "batch length"]
    # of each token as the answer's last; zeros at padding
    end_logits: Float[Tensor, "batch length"]


class BertForQuestionAnswering(TokenBert):
    """Extractive question answering: the first and last token of the answer in the text.

    Args:
        config: the sizes; `num_labels` must be 2, as other tools expect.

    Raises:
        SettingsError: `num_labels` isn't 2.
    """

    last = "qa_outputs"  # its logits are those of start (0) and end (1)

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        initialize(self, config)

    def forward_packed(self, batch: PackedBatch, mask: PaddingMask) -> QuestionAnsweringOutput:
        """Return `scores`, zeros at padding."""
        starts, ends = super().forward_packed(batch, mask).unbind(dim=-1)
        return QuestionAnsweringOutput(starts, ends)


class BertForMultipleChoice(PooledBert):
    """Multiple choice: one logit for each choice, from the C of context and choice together."""

    scored = "choice"

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config, num_scores=1)

    def score(self, pooled: Float[Tensor, "sequences hidden"]) -> Float[Tensor, " sequences"]:
        """Return a logit for each sequence, comparable within the choices of one question."""
        return super().score(pooled)[:, 0]

    def forward(
        self,
        input_ids: Int[Tensor, "batch choices length"],
        token_type_ids: Int[Tensor, "batch choices length"] | None = None,
        attention_mask: Shaped[Tensor, "batch choices length"] | None = None,
    ) -> Float[Tensor, "batch choices"]:
        """Return a logit for each choice; arguments and errors otherwise as in `BertModel`."""
        if input_ids.dim() != 3:
            shape = list(input_ids.shape)
            raise InputError(f"input_ids must be [batch, choices, length], got {shape}")
        check_shapes(input_ids, token_type_ids, attention_mask)
        scores: Tensor = super().forward(
            input_ids.flatten(0, 1),
            None if token_type_ids is None else token_type_ids.flatten(0, 1),
            None if attention_mask is None else attention_mask.flatten(0, 1),
        )
        return scores.view(input_ids.shape[:2])


# The models by their architecture, as config.json names it.
FINE_TUNED: dict[str, type[FineTunedBert]] = {
    kind.__name__: kind
    for kind in (
        BertForSequenceClassification,
        BertForTokenClassification,
        BertForQuestionAnswering,
        BertForMultipleChoice,
    )
}
