"""The heads that fine-tuning puts on the encoder, one model each; losses are the tasks' own.

Each has `scores` on a packed batch, and the padded interface in front of it. `head_scores` is what
comes after the encoder, for hidden states that something else computed.

Source: Devlin et al. 2018, section 4; the multiple choice is that of section 4.4.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from bertkit.base.errors import InputError, SettingsError
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder, Pooler, check_shapes, pack_padded
from bertkit.models.bert.pretrained import PretrainedBert
from bertkit.models.bert.weights import initialize
from bertkit.nn.dropout import Dropout
from bertkit.nn.packing import PackedBatch, pad


class FineTunedBert(PretrainedBert):
    """Base of the models below: an encoder, and a head that scores what it gives."""

    may_be_causal = True
    encoder: BertEncoder

    def scores(self, batch: PackedBatch) -> Float[Tensor, "rows ..."]:
        """What the head makes of a batch, a row for each sequence or each token."""
        return self.head_scores(self.states(batch), batch)

    @property
    def head_layers(self) -> tuple[int, ...]:
        """The layers whose hidden states the head reads, side by side; -1 is the last."""
        return (-1,)

    def states(self, batch: PackedBatch) -> Float[Tensor, "tokens features"]:
        """The hidden states that the head reads."""
        states: Tensor = self.encoder(batch)
        return states

    def head_scores(
        self, tokens: Float[Tensor, "tokens hidden"], batch: PackedBatch
    ) -> Float[Tensor, "rows ..."]:
        """What the head makes of the hidden states of a batch, those of `head_layers`."""
        raise NotImplementedError


class PooledBert(FineTunedBert):
    """Base of those that score C; only the tokens that it comes from are computed to the end.

    Args:
        config: the sizes.
        num_scores: of each sequence.
    """

    def __init__(self, config: BertConfig, num_scores: int) -> None:
        super().__init__(config)
        self.encoder = BertEncoder(config)
        self.pooler = Pooler(config)
        self.dropout = classifier_dropout(config)
        self.classifier = nn.Linear(config.hidden_size, num_scores)
        initialize(self, config.initializer_range)

    def scores(self, batch: PackedBatch) -> Float[Tensor, "sequences ..."]:
        """What the head makes of each sequence."""
        return self.score(self.pooler.pool(self.encoder.summary_states(batch)))

    def head_scores(
        self, tokens: Float[Tensor, "tokens hidden"], batch: PackedBatch
    ) -> Float[Tensor, "sequences ..."]:
        """The same of hidden states."""
        return self.score(self.pooler(tokens, batch))

    def score(self, pooled: Float[Tensor, "sequences hidden"]) -> Float[Tensor, "sequences ..."]:
        """The same of C."""
        scores: Tensor = self.classifier(self.dropout(pooled))
        return scores


class BertForSequenceClassification(PooledBert):
    """Scores of `config.num_labels` labels for each sequence, from its C.

    Args:
        config: the sizes and labels.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config, config.num_labels)

    def forward(
        self,
        input_ids: Int[Tensor, "batch length"],
        token_type_ids: Int[Tensor, "batch length"] | None = None,
        attention_mask: Shaped[Tensor, "batch length"] | None = None,
    ) -> Float[Tensor, "batch labels"]:
        """As `scores`; arguments and errors as in `BertModel`."""
        batch, _ = pack_padded(self.config, input_ids, token_type_ids, attention_mask)
        return self.scores(batch)


class BertForTokenClassification(FineTunedBert):
    """Scores of `config.num_labels` labels for each token, from its T_i.

    Args:
        config: the sizes and labels.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.encoder = BertEncoder(config)
        self.dropout = classifier_dropout(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        initialize(self, config.initializer_range)

    def head_scores(
        self, tokens: Float[Tensor, "tokens hidden"], batch: PackedBatch
    ) -> Float[Tensor, "tokens labels"]:
        """Scores of all labels for each token."""
        scores: Tensor = self.classifier(self.dropout(tokens))
        return scores

    def forward(
        self,
        input_ids: Int[Tensor, "batch length"],
        token_type_ids: Int[Tensor, "batch length"] | None = None,
        attention_mask: Shaped[Tensor, "batch length"] | None = None,
    ) -> Float[Tensor, "batch length labels"]:
        """As `scores`, zeros at padding; arguments and errors as in `BertModel`."""
        batch, mask = pack_padded(self.config, input_ids, token_type_ids, attention_mask)
        return pad(self.scores(batch), mask)


@dataclass(frozen=True)
class QuestionAnsweringOutput:
    """What `BertForQuestionAnswering` returns, padded as its input was.

    Attributes:
        start_logits: scores of "the answer begins here"; zeros at padding.
        end_logits: scores of "it ends here", the token itself included; zeros at padding.
    """

    start_logits: Float[Tensor, "batch length"]
    end_logits: Float[Tensor, "batch length"]


class BertForQuestionAnswering(FineTunedBert):
    """Where in the text the answer begins and ends.

    Args:
        config: the sizes; `num_labels` must be 2, as other tools read it.

    Raises:
        SettingsError: `num_labels` is another number.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        if config.num_labels != 2:
            raise SettingsError(
                "BertForQuestionAnswering scores beginnings and ends: num_labels"
                f" ({config.num_labels}) must be 2"
            )
        self.encoder = BertEncoder(config)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        initialize(self, config.initializer_range)

    def head_scores(
        self, tokens: Float[Tensor, "tokens hidden"], batch: PackedBatch
    ) -> Float[Tensor, "tokens 2"]:
        """Scores of beginning (0) and end (1) for each token."""
        scores: Tensor = self.qa_outputs(tokens)
        return scores

    def forward(
        self,
        input_ids: Int[Tensor, "batch length"],
        token_type_ids: Int[Tensor, "batch length"] | None = None,
        attention_mask: Shaped[Tensor, "batch length"] | None = None,
    ) -> QuestionAnsweringOutput:
        """As `scores`; arguments and errors as in `BertModel`."""
        batch, mask = pack_padded(self.config, input_ids, token_type_ids, attention_mask)
        starts, ends = pad(self.scores(batch), mask).unbind(dim=-1)
        return QuestionAnsweringOutput(starts, ends)


class BertForMultipleChoice(PooledBert):
    """Which of several endings? One score for each, from the C of beginning and ending together.

    Args:
        config: the sizes.
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config, num_scores=1)

    def score(self, pooled: Float[Tensor, "sequences hidden"]) -> Float[Tensor, " sequences"]:
        """A score for each sequence, to be held against those of the same question."""
        return super().score(pooled)[:, 0]

    def forward(
        self,
        input_ids: Int[Tensor, "batch choices length"],
        token_type_ids: Int[Tensor, "batch choices length"] | None = None,
        attention_mask: Shaped[Tensor, "batch choices length"] | None = None,
    ) -> Float[Tensor, "batch choices"]:
        """A score for each choice; arguments and errors otherwise as in `BertModel`."""
        if input_ids.dim() != 3:
            shape = list(input_ids.shape)
            raise InputError(f"input_ids must be [batch, choices, length], and is {shape}")
        check_shapes(input_ids, token_type_ids, attention_mask)
        batch, _ = pack_padded(
            self.config,
            input_ids.flatten(0, 1),
            None if token_type_ids is None else token_type_ids.flatten(0, 1),
            None if attention_mask is None else attention_mask.flatten(0, 1),
        )
        return self.scores(batch).view(input_ids.shape[:2])


def classifier_dropout(config: BertConfig) -> Dropout:
    """Dropout before a classifier, as transformers has it."""
    rate = config.classifier_dropout
    return Dropout(config.hidden_dropout_prob if rate is None else rate)
