"""What can be chosen about the training of recurrent nets."""

from typing import Annotated, Literal

from pydantic import Field

from bertkit.base.settings import Count, Settings
from bertkit.training.settings import BudgetSettings, LoopSettings, OptimizationSettings, Positive

Size = Annotated[int, Field(ge=1, le=1 << 16)]


class NetSettings(OptimizationSettings, BudgetSettings):
    """What all of them have."""

    learning_rate: Positive = Field(2e-3, description="Peak learning rate.")
    embedding_size: Size = Field(128, description="Size of a word embedding.")
    hidden_size: Size = Field(256, description="Hidden size, per direction.")
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        0.1, description="Dropout on embeddings and on hidden states."
    )


class ReaderSettings(NetSettings, LoopSettings):
    """Nets that read sequences."""

    cell: Literal["lstm", "gru"] = Field("lstm", description="The kind of net.")
    num_layers: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="Number of layers, per direction."
    )
    is_bidirectional: bool = Field(True, description="Also read from the end (bidirectional).")


class LanguageModelSettings(ReaderSettings):
    """A language model on shards."""

    max_length: Annotated[int, Field(ge=8, le=512)] = Field(
        128, description="Tokens of an example, with [CLS] and [SEP]."
    )
    short_rate: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        0.1, description="Share of examples that are truncated to a random shorter length."
    )
    eval_examples: Count = Field(64, description="Held-out examples per evaluation.")


class SkipThoughtSettings(NetSettings, LoopSettings):
    """A sentence encoder on shards."""

    batch_size: Count = Field(64, description="Sentences per optimizer step.")
    max_length: Annotated[int, Field(ge=3, le=512)] = Field(
        48,
        description="Maximum tokens of a sentence, with [CLS] and [SEP]; longer ones are"
        " truncated.",
    )
    eval_examples: Count = Field(256, description="Held-out sentences per evaluation.")


class SkipGramSettings(Settings):
    """Skip-gram vectors on shards; the defaults are gensim's, except the size."""

    vector_size: Annotated[int, Field(ge=1, le=4096)] = Field(
        128, description="Features of a word's vector."
    )
    window: Count = Field(5, description="Maximum number of words predicted on each side.")
    negative: Count = Field(5, description="Negative samples for each predicted word.")
    epochs: Count = Field(5, description="Passes over the text.")
    min_count: Count = Field(5, description="Words that occur less often get no vector.")
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(
        0, description="Seed of initial vectors, windows and negative samples."
    )


class ClassifierSettings(ReaderSettings):
    """A classifier of texts."""

    pooling: Literal["max", "ends"] = Field(
        "max", description="Pooling of the states: max, or the last states (ends)."
    )
    freezes_reader: bool = Field(
        False, description="Freeze a language model's weights, and train on its states."
    )


class TranslatorSettings(NetSettings):
    """A translator on pairs of texts."""

    attention_size: Size = Field(256, description="Size of the attention's hidden layer.")
    tokens_per_batch: Count = Field(
        2048, description="Tokens per step, source and target together."
    )
    accumulate: Count = Field(1, description="Micro-batches per step.")
    label_smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        0.0, description="Label smoothing: the share of probability spread evenly over all words."
    )
