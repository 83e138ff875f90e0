"""The sizes of a BERT, under the names of `config.json`."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)

from bertkit.base.errors import CheckpointError, SettingsError
from bertkit.base.settings import describe_validation
from bertkit.checkpoints.families import check_family, find_family, is_bert
from bertkit.checkpoints.names import BERT, EncoderNames
from bertkit.models.bert.labels import LABEL_KEYS, ConfigValues, read_labels
from bertkit.nn.parts import EncoderParts, HeadParts


class ModelConfig(BaseModel):
    """Base of the configs: the content of a `config.json`."""

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            problems = describe_validation(error, type(self))
            raise SettingsError(f"{type(self).__name__}: {problems}") from None

    @classmethod
    def from_dict(cls, values: ConfigValues, source: str | Path) -> Self:
        """Build the config from a foreign `config.json`, or raise a `CheckpointError`."""
        try:
            config = cls(**values)
            config.to_dict()  # unknown keys may be kept, so they must be serializable
        except (SettingsError, ValueError, TypeError) as error:
            raise CheckpointError(f"{source}: {error}") from None
        return config

    def to_dict(self) -> dict[str, Any]:
        """Return all keys for `config.json`, unknown ones included."""
        return self.model_dump(mode="json")


Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
Size = Annotated[int, Field(ge=1, le=1 << 24)]
TokenId = Annotated[int, Field(ge=0, le=1 << 24)]
Epsilon = Annotated[float, Field(gt=0.0)]
# A choice is a sequence, one of several that one example has.
Scored = Literal["sequence", "token", "choice"]
ProblemType = Literal["single_label_classification", "multi_label_classification", "regression"]

ENCODER = "BertModel"
QUESTION_ANSWERING = "BertForQuestionAnswering"
TAGGING = "BertForTokenClassification"
CLASSIFICATION = "BertForSequenceClassification"
MULTIPLE_CHOICE = "BertForMultipleChoice"
READ_TOKENS = (QUESTION_ANSWERING, TAGGING)  # whose heads have no pooler in a BERT

FEATURE_HEAD = "feature_head"  # a key that only `BertFeatureBased` reads
CROSS_ENCODER = "sentence_transformers"  # a key that only its CrossEncoder reads
NOT_NONE = Field(exclude_if=lambda value: value is None)


# The keys of `bertkit.nn.block.ACTIVATIONS`, which is torch's.
ACTIVATIONS = (
    *("gelu", "gelu_new", "gelu_python", "gelu_pytorch_tanh"),
    *("mish", "relu", "silu", "swish", "tanh"),
)


def _check_activation(name: str) -> str:
    if name not in ACTIVATIONS:
        raise ValueError(
            f"unknown activation {name!r:.80}; expected one of {', '.join(ACTIVATIONS)}"
        )
    return name


Activation = Annotated[str, AfterValidator(_check_activation)]


class BertConfig(ModelConfig):
    """The architecture; the defaults are those of BERT-Base, uncased.

    Unknown keys are kept and written back; keys that ask for something unsupported are refused by
    name. `preset` returns the published sizes. The configs of other families are subclasses, which
    say what differs: defaults, names of keys, `parts`, and the names of tensors.

    Attributes:
        vocab_size: entries of the vocabulary.
        hidden_size: features of a token; a multiple of `num_attention_heads`.
        num_hidden_layers: encoder blocks.
        num_attention_heads: attention heads of each block.
        intermediate_size: features of the feed-forward network's inner layer.
        hidden_act: its activation, one of `ACTIVATIONS`.
        hidden_dropout_prob: dropout on embeddings and on the output of each sub-layer.
        attention_probs_dropout_prob: dropout on attention weights.
        max_position_embeddings: tokens of the longest sequence.
        type_vocab_size: number of segments; 0 if the embeddings of a family have none.
        initializer_range: standard deviation of initial weights.
        layer_norm_eps: added to the variance in layer normalization.
        pad_token_id: the id of [PAD].
        classifier_dropout: dropout before a classifier; None means `hidden_dropout_prob`.
        id2label: names of a classifier's labels, by id from 0; `num_labels=3` makes LABEL_0 to
            LABEL_2.
        label2id: the inverse, derived from `id2label`.
        problem_type: the kind of labels; None if unknown.
        is_decoder: whether a token attends only to itself and those before it.

    Raises:
        SettingsError: values are invalid, or contradict each other.

    Source: Devlin et al. 2018, section 3.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, strict=True)
    model_types: ClassVar[tuple[str, ...]] = ("bert",)
    names: ClassVar[EncoderNames] = BERT
    own_word_activation: ClassVar[str | None] = (
        None  # of the masked LM head, if it isn't hidden_act
    )
    their_keys: ClassVar[ConfigValues] = {}  # name of an attribute → that in the family's files

    model_type: str = "bert"
    vocab_size: Size = 30522
    hidden_size: Size = 768
    num_hidden_layers: Annotated[int, Field(ge=1, le=256)] = 12
    num_attention_heads: Size = 12
    intermediate_size: Size = 3072
    hidden_act: Activation = "gelu"
    hidden_dropout_prob: Rate = 0.1
    attention_probs_dropout_prob: Rate = 0.1
    max_position_embeddings: Size = 512
    type_vocab_size: Size = 2
    initializer_range: Annotated[float, Field(gt=0.0)] = 0.02
    layer_norm_eps: Epsilon = 1e-12
    pad_token_id: TokenId = 0
    classifier_dropout: Annotated[Rate | None, NOT_NONE] = None
    id2label: Annotated[dict[int, str] | None, NOT_NONE] = None
    label2id: Annotated[dict[str, int] | None, NOT_NONE] = None
    problem_type: Annotated[ProblemType | None, NOT_NONE] = None
    is_decoder: bool = Field(default=False, exclude_if=lambda value: value is False)

    @property
    def parts(self) -> EncoderParts:
        """What the encoder is made of."""
        return EncoderParts()

    def find_head(self, architecture: str) -> HeadParts | None:
        """Return what a class computes before its last linear layer; None if nothing."""
        return None if architecture in READ_TOKENS else HeadParts()

    def find_dropout(self, architecture: str) -> float:
        """Return the rate of dropout before the last linear layer of a class."""
        if architecture == QUESTION_ANSWERING:
            return 0.0
        rate = self.classifier_dropout
        return self.hidden_dropout_prob if rate is None else rate

    @property
    def dropout_rates(self) -> Mapping[str, float]:
        """The rate of dropout by what it is applied to: the output of each part of the encoder.

        `inner` is the inner layer of feed-forward networks.
        """
        parts = ("embeddings", "attention", "cross_attention", "feed_forward")
        return {**dict.fromkeys(parts, self.hidden_dropout_prob), "inner": 0.0}

    def keep_layers(self, numbers: Sequence[int]) -> Self:
        """Return the config of a model that has these layers alone, from 0."""
        return self.model_copy(update={"num_hidden_layers": len(numbers)})

    def find_deviation(self, weight: str) -> float:
        """Return the standard deviation of a weight's initial values, by our name."""
        del weight
        return self.initializer_range

    @property
    def word_activation(self) -> str:
        """The activation of the masked LM head."""
        return self.own_word_activation or self.hidden_act

    @property
    def max_length(self) -> int:
        """Tokens of the longest sequence."""
        return self.max_position_embeddings - self.parts.position_offset

    @property
    def num_labels(self) -> int:
        """Number of a classifier's labels; 2 if the config doesn't say."""
        return 2 if self.id2label is None else len(self.id2label)

    @property
    def labels(self) -> tuple[str, ...]:
        """A classifier's labels by id; none if the config doesn't say."""
        return tuple((self.id2label or {}).values())

    @property
    def label_names(self) -> tuple[str, ...]:
        """A classifier's labels by id, as transformers names them if the config doesn't say."""
        return self.labels or ("LABEL_0", "LABEL_1")

    @model_validator(mode="before")
    @classmethod
    def _keys_are_ours(cls, values: object) -> object:
        if not isinstance(values, dict):  # an encoder-decoder's config may have anything here
            return values
        rest = {name: value for name, value in values.items() if name not in LABEL_KEYS}
        for ours, theirs in cls.their_keys.items():
            if theirs in rest:
                rest[ours] = rest.pop(theirs)
        return {**rest, **read_labels(values)}

    @field_validator("model_type")
    @classmethod
    def _model_is_of_the_family(cls, name: str) -> str:
        if name not in cls.model_types:
            is_own = name.startswith("bertkit-")
            why = "isn't a BERT" if is_own else "isn't supported"
            raise ValueError(f"expected {cls.model_types[0]!r}, got {name!r:.80}, which {why}")
        return name

    @field_validator("pad_token_id")
    @classmethod
    def _padding_is_entry_0(cls, id_: int) -> int:
        if id_ and "bert" in cls.model_types:
            raise ValueError(f"must be 0, where BERT's vocabularies have [PAD], got {id_}")
        return id_

    @field_validator("is_decoder", mode="before")
    @classmethod
    def _none_is_false(cls, value: bool | None) -> bool | None:
        return False if value is None else value

    @field_validator("is_decoder")
    @classmethod
    def _reads_both_ways(cls, value: bool) -> bool:
        if value and "bert" not in cls.model_types:
            raise ValueError(
                f"must be false: a {cls.model_types[0]} reads both ways here; only a BERT is"
                " trained to continue texts"
            )
        return value

    @property
    def is_bidirectional(self) -> bool:
        """Whether tokens attend to both sides."""
        return not self.is_decoder

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size ({self.hidden_size}) must be a multiple of"
                f" num_attention_heads ({self.num_attention_heads})"
            )
        if self.pad_token_id >= self.vocab_size:
            raise ValueError(
                f"pad_token_id ({self.pad_token_id}) must be below vocab_size ({self.vocab_size})"
            )
        if self.max_length < 1:
            raise ValueError(
                f"max_position_embeddings ({self.max_position_embeddings}) must be more than"
                f" {self.parts.position_offset}, the row of position 0"
            )
        if self.problem_type == "single_label_classification" and self.num_labels == 1:
            raise ValueError(
                "problem_type='single_label_classification' needs at least two labels, and"
                " num_labels is 1; a single number is a 'regression'"
            )
        return self

    @model_validator(mode="after")
    def _check_supported(self) -> Self:
        for name, (harmless, reason) in UNSUPPORTED.items():
            value = (self.model_extra or {}).get(name)
            if value not in harmless:
                raise ValueError(f"{name}={value!r:.80} isn't supported: bertkit's BERT {reason}")
        head = (self.model_extra or {}).get(FEATURE_HEAD)
        if isinstance(head, dict) and head.get("lstm_hidden") is not None:
            raise ValueError(
                f"{FEATURE_HEAD} has a BiLSTM (lstm_hidden={head['lstm_hidden']!r:.20}), which"
                " isn't supported; train the task again without it (`bertkit study features`"
                " compares such heads)"
            )
        return self

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """Return the config of a named size, as `find_sizes`, with changes such as `vocab_size`.

        Raises:
            SettingsError: there is no such size.
        """
        return cls(**{**find_sizes(name), **changes})

    @classmethod
    def from_dict(cls, values: ConfigValues, source: str | Path) -> Self:
        """Build the config from a foreign `config.json`, in the class of its family.

        Raises:
            CheckpointError: it isn't an encoder that bertkit has, is invalid, or asks for something
                unsupported.
        """
        if not is_bert(values):
            raise CheckpointError(
                f"{source} is an encoder-decoder, for `bertkit translate` or `bertkit summarize`; a"
                " single BERT is needed here"
            )
        check_family(values, source)
        family: type[Self] = find_family(values).config
        if family is not cls and issubclass(family, cls):
            return family.from_dict(values, source)
        return super().from_dict(values, source)

    def to_dict(self) -> dict[str, Any]:
        """Return all keys for `config.json`, under the names of the family's files."""
        return self.rename_keys(super().to_dict())

    @classmethod
    def rename_keys(cls, values: ConfigValues) -> dict[str, Any]:
        """Return values under the keys of the family's files, which count if both are there."""
        return {cls.their_keys.get(name, name): value for name, value in values.items()}


HEAD_FEATURES = 64
NARROW_STEP = 8  # of the widths of models with one head
LAYERS_BY_WIDTH = re.compile(r"([1-9]\d{0,2})x([1-9]\d{0,4})", re.ASCII)


def _sizes(num_layers: int, hidden_size: int) -> dict[str, int]:
    return {
        "num_hidden_layers": num_layers,
        "hidden_size": hidden_size,
        "num_attention_heads": max(1, hidden_size // HEAD_FEATURES),
        "intermediate_size": 4 * hidden_size,
    }


# Source: Devlin et al. 2018 (base, large); Turc et al. 2019, "Well-Read Students Learn Better".
PRESETS: dict[str, dict[str, int]] = {
    "tiny": _sizes(2, 128),
    "mini": _sizes(4, 256),
    "small": _sizes(4, 512),
    "medium": _sizes(8, 512),
    "base": _sizes(12, 768),
    "large": _sizes(24, 1024),
}


def find_sizes(name: str) -> dict[str, int]:
    """Return the sizes of a preset, or of layers x width, such as 3x128.

    A head has 64 features, as in the presets, and a feed-forward layer is four times as wide.

    Raises:
        SettingsError: it is neither, or the heads can't divide the hidden size.
    """
    if name in PRESETS:
        return PRESETS[name]
    if (match := LAYERS_BY_WIDTH.fullmatch(name)) is None:
        known = ", ".join(PRESETS)
        raise SettingsError(
            f"unknown preset {name!r}; expected one of {known}, or layers x width, such as 3x128"
        )
    layers, width = map(int, match.groups())
    step = HEAD_FEATURES if width >= 2 * HEAD_FEATURES else NARROW_STEP
    if width % step:
        lower = max(step, width - width % step)
        reason = "" if step == NARROW_STEP else ", the size of an attention head"
        raise SettingsError(
            f"{name}: the hidden size must be a multiple of {step}{reason}; use {layers}x{lower} or"
            f" {layers}x{lower + step}"
        )
    return _sizes(layers, width)


def check_bidirectional(config: BertConfig, source: str | Path, reason: str) -> None:
    """Raise CheckpointError if a model's tokens don't attend to both sides; with the reason."""
    if not config.is_bidirectional:
        raise CheckpointError(f"{source} reads left to right (is_decoder), {reason}")


def describe_direction(config: ConfigValues) -> str:
    """Return how the tokens of a config's model attend, where that isn't to both sides."""
    return "left to right" if config.get("is_decoder") else ""


class Unsupported(NamedTuple):
    """A key of foreign configs that changes what the model computes."""

    harmless: tuple[JsonValue, ...]  # the values under which it changes nothing
    reason: str  # what bertkit does instead; continues a message after "bertkit's BERT"


UNSUPPORTED = {
    "position_embedding_type": Unsupported(("absolute", None), "has absolute positions only"),
    "add_cross_attention": Unsupported((False, None), "attends to its own tokens only"),
    "is_encoder_decoder": Unsupported((False, None), "is an encoder"),
    "tie_word_embeddings": Unsupported(
        (True, None), "ties its output layer to the word embeddings"
    ),
    "pruned_heads": Unsupported(({}, None), "has the same number of heads in each layer"),
    "quantization_config": Unsupported((None,), "has unquantized weights"),
    "embedding_size": Unsupported((None,), "has embeddings of hidden_size features"),
}
