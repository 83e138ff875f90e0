"""The sizes of the recurrent networks, under the names of `config.json`."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from bertkit.base.errors import CheckpointError
from bertkit.models.bert.config import ModelConfig
from bertkit.models.bert.labels import ConfigValues

Size = Annotated[int, Field(ge=1, le=1 << 16)]
Vocabulary = Annotated[int, Field(ge=1, le=1 << 24)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]


class NetConfig(ModelConfig):
    """Base of the configs below.

    Attributes:
        model_type: the kind of network.
        vocab_size: entries of the vocabulary.

    Raises:
        SettingsError: a size is invalid, or a key is unknown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    model_type: str
    vocab_size: Vocabulary

    @classmethod
    def from_dict(cls, values: ConfigValues, source: str | Path) -> Self:
        """Build the config from a foreign `config.json`.

        Raises:
            CheckpointError: it belongs to another kind of model, or is invalid.
        """
        expected, found = cls.model_fields["model_type"].default, values.get("model_type")
        if found != expected:
            raise CheckpointError(
                f"{source} holds a model of the type {found!r:.80}; expected {expected!r}"
            )
        return super().from_dict(values, source)


class RecurrentConfig(NetConfig):
    """Sizes of the networks that read token by token.

    Attributes:
        embedding_size: features of a word embedding; the output layer is tied to the embeddings.
        hidden_size: features of a state.
        dropout: dropout on embeddings, and on states or on the output computed from them.
    """

    embedding_size: Size = 128
    hidden_size: Size = 256
    dropout: Rate = 0.1


class ReaderConfig(RecurrentConfig):
    """Sizes of the networks that read sequences in one direction or in both.

    Attributes:
        cell: the kind of recurrent cell.
        num_layers: stacked layers in each direction.
        is_bidirectional: whether a second network reads from the last token to the first.
    """

    cell: Literal["lstm", "gru"] = "lstm"
    num_layers: Annotated[int, Field(ge=1, le=64)] = 1
    is_bidirectional: bool = True


class LanguageModelConfig(ReaderConfig):
    """The sizes of a `RecurrentLanguageModel`."""

    model_type: Literal["bertkit-recurrent-language-model"] = "bertkit-recurrent-language-model"


class ClassifierConfig(ReaderConfig):
    """The sizes of a `RecurrentClassifier`.

    Attributes:
        num_labels: number of classes.
        pooling: how states become a sequence's vector: the maximum of each feature (max), or each
            direction's final state (ends).
    """

    model_type: Literal["bertkit-recurrent-classifier"] = "bertkit-recurrent-classifier"
    num_labels: Annotated[int, Field(ge=2, le=100_000)] = 2
    pooling: Literal["max", "ends"] = "max"


class SkipThoughtConfig(RecurrentConfig):
    """The sizes of a `SkipThought`; a sentence's vector has `hidden_size` features."""

    model_type: Literal["bertkit-skip-thought"] = "bertkit-skip-thought"


class TranslatorConfig(RecurrentConfig):
    """The sizes of an `AttentionalTranslator`.

    Attributes:
        attention_size: features of the attention's hidden layer.
        decoder_start_token_id: id of the token that begins a translation, [CLS].
        eos_token_id: id of the token that ends it, [SEP].
    """

    model_type: Literal["bertkit-attentional-translator"] = "bertkit-attentional-translator"
    attention_size: Size = 256
    decoder_start_token_id: Annotated[int, Field(ge=0)]
    eos_token_id: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _ids_are_words(self) -> Self:
        for name in ("decoder_start_token_id", "eos_token_id"):
            if getattr(self, name) >= self.vocab_size:
                raise ValueError(f"{name} must be under vocab_size ({self.vocab_size:,})")
        return self


class StaticVectorsConfig(NetConfig):
    """The sizes of `StaticVectors`.

    Attributes:
        vector_size: features of a word's vector.
    """

    model_type: Literal["bertkit-static-vectors"] = "bertkit-static-vectors"
    vector_size: Size = 128
