"""What can be chosen about the training of recurrent nets."""

from typing import Annotated, Literal

from pydantic import Field

from bertkit.training.settings import BudgetedSettings, Count, Positive, TrainingSettings

Size = Annotated[int, Field(ge=1, le=1 << 16)]


class NetSettings(BudgetedSettings):
    """What all of them have."""

    learning_rate: Positive = Field(2e-3, description="Peak learning rate.")
    embedding_size: Size = Field(128, description="Features of a word's embedding.")
    hidden_size: Size = Field(256, description="Features of a state, in each direction.")
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        0.1, description="Dropout on embeddings, and on what follows from the states."
    )


class ReaderSettings(NetSettings, TrainingSettings):
    """Nets that read sequences."""

    cell: Literal["lstm", "gru"] = Field("lstm", description="The kind of net.")
    num_layers: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="Nets on top of each other, in each direction."
    )
    is_bidirectional: bool = Field(True, description="Whether another net reads from the end.")


class LanguageModelSettings(ReaderSettings):
    """A language model on shards."""

    max_length: Annotated[int, Field(ge=8, le=512)] = Field(
        128, description="Tokens of an example, with [CLS] and [SEP]."
    )
    short_rate: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        0.1, description="Share of examples that are truncated to a random shorter length."
    )
    eval_sequences: Count = Field(64, description="Held-out examples of each evaluation.")


class SkipThoughtSettings(NetSettings, TrainingSettings):
    """A sentence encoder on shards."""

    batch_size: Count = Field(64, description="Sentences of one optimizer step.")
    max_length: Annotated[int, Field(ge=3, le=512)] = Field(
        48, description="Tokens of a sentence, with [CLS] and [SEP]; what is longer is cut."
    )
    eval_sequences: Count = Field(256, description="Held-out sentences of each evaluation.")


class ClassifierSettings(ReaderSettings):
    """A classifier of texts."""

    pooling: Literal["max", "ends"] = Field(
        "max", description="What stands for a text: the largest features, or the last states."
    )
    freezes_reader: bool = Field(
        False, description="Keep a language model's weights as they are, and learn on its states."
    )


class TranslatorSettings(NetSettings):
    """A translator on pairs of texts."""

    attention_size: Size = Field(256, description="Features in which states are compared.")
    tokens_per_batch: Count = Field(
        2048, description="Tokens of a step, of what is read and what is written together."
    )
    accumulate: Count = Field(1, description="Parts in which a step goes through the model.")
    label_smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        0.0, description="Share of a word's probability that is wanted spread over all words."
    )
