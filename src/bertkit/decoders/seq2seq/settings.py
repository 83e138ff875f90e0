"""Settings of training an encoder-decoder."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from bertkit.base.settings import NO_FLAG, Settings
from bertkit.decoders.decoding.settings import DecodingSettings
from bertkit.decoders.generation.settings import KindName
from bertkit.decoders.seq2seq.pairs import PairSettings
from bertkit.tasks.settings import METRIC_HELP
from bertkit.training.settings import (
    BUDGET_FIELDS,
    BudgetedSettings,
    Count,
    OverwriteSettings,
    Positive,
    Seed,
)

# The default budget: enough for some ten thousand short pairs.
DEFAULT_MINUTES = 50.0
MOST_EPOCHS = 60.0
MAX_EPOCHS = 10_000.0  # upper limit of --epochs
MOST_HELD_OUT = 2_000  # maximum number of training pairs to hold out

Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
Length = Annotated[int, Field(ge=4, le=4096)]

WARM_DEFAULTS = {"learning_rate": 1e-4, "dropout": 0.1, "attention_dropout": 0.1}
NEW_MODEL_FIELDS = (
    "size",
    "layers",
    "hidden_size",
    "heads",
    "feed_forward",
    "positions",
    "norm_first",
    "vocab_size",
    "lowercase",
)


class ModelSettings(Settings):
    """Settings of the model's sizes, or of the encoder to start from."""

    model: str | None = Field(
        default=None,
        description="Initialize encoder and decoder from this encoder, and use its vocabulary: a"
        " model folder of any format, a run, or the id of a model on the Hub. Without it, training"
        " starts from scratch.",
    )
    revision: str | None = Field(
        default=None, description="Branch, tag or commit, if --model is a model on the Hub."
    )
    size: Literal["tiny", "mini", "small", "medium", "base", "large"] | None = Field(
        default=None, description="Named sizes of a new model; the flags below change single ones."
    )
    layers: Annotated[int, Field(ge=1, le=64)] | None = Field(
        default=None, description="Layers of encoder and decoder of a new model; by default 3."
    )
    hidden_size: Annotated[int, Field(ge=8, le=8192)] | None = Field(
        default=None, description="Hidden size of a new model; by default 256."
    )
    heads: Count | None = Field(
        default=None, description="Attention heads of a new model; by default one per 64 features."
    )
    feed_forward: Annotated[int, Field(ge=8, le=1 << 16)] | None = Field(
        default=None,
        description="Feed-forward size of a new model; by default twice the hidden size, or that"
        " of the named size.",
    )
    positions: Literal["learned", "sinusoidal"] = Field(
        default="learned",
        description="Position embeddings of a new model: learned, or fixed sines and cosines.",
    )
    norm_first: bool = Field(
        default=False,
        description="Normalize the input of each sublayer (pre-norm) instead of the sum: more"
        " stable with many layers, but no other tool loads such a folder.",
    )
    share_embeddings: bool = Field(
        default=True, description="Share word embeddings between encoder and decoder."
    )
    vocab_size: Annotated[int, Field(ge=64, le=1_000_000)] = Field(
        default=6000,
        description="Entries of a new vocabulary, learned from both sides together. A quarter of"
        " them, but at least 1,000, may be characters, and rarer ones are [UNK]: Chinese, Japanese"
        " and Korean need more.",
    )
    lowercase: bool = Field(
        default=False, description="Lowercase a new vocabulary and strip accents."
    )
    dropout: Rate = Field(
        default=0.2, description="Dropout on features; with --model the default is 0.1."
    )
    attention_dropout: Rate = Field(
        default=0.0, description="Dropout on attention weights; with --model the default is 0.1."
    )

    @model_validator(mode="after")
    def _one_beginning(self) -> Self:
        if self.model is None:
            if self.revision is not None:
                raise ValueError("revision needs model")
            return self
        defaults = type(self).model_fields
        given = [name for name in NEW_MODEL_FIELDS if getattr(self, name) != defaults[name].default]
        if given:
            raise ValueError(f"{' and '.join(given)}: that is for a new model, without --model")
        return self


class Seq2SeqSettings(ModelSettings, PairSettings, BudgetedSettings, OverwriteSettings):
    """Settings of `bertkit finetune translate` and `bertkit finetune summarize`."""

    epochs: Annotated[float, Field(gt=0.0, le=MAX_EPOCHS)] | None = Field(
        default=None,
        description="Budget in passes over all pairs. By default,"
        f" {DEFAULT_MINUTES:g} minutes, but at most {MOST_EPOCHS:g} epochs.",
    )
    minutes: Positive | None = Field(
        default=None,
        description="Minutes to train, with all evaluations, kept within 5 %: the number of steps"
        " is planned by measuring a few, and again while the run trains.",
    )
    tokens_per_batch: Annotated[int, Field(ge=16)] = Field(
        default=4096, description="Tokens per optimizer step, source and target together."
    )
    accumulate: Count = Field(default=1, description="Micro-batches per step, to save memory.")
    label_smoothing: Rate = Field(
        default=0.1,
        description="Label smoothing: the share of probability spread evenly over all words.",
    )
    learning_rate: Positive = Field(
        default=1e-3, description="Peak learning rate; with --model the default is 1e-4."
    )
    schedule: Literal["linear", "cosine", "constant", "inverse_sqrt"] = Field(
        default="inverse_sqrt", description="How the learning rate falls after its peak."
    )
    beta2: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.98, description="AdamW's beta2, the decay rate of the mean squared gradient."
    )
    weight_decay: Annotated[float, Field(ge=0.0)] = Field(
        default=1e-4, description="AdamW's weight decay; biases and layer norms have none."
    )
    max_source_length: Length = Field(
        default=128, description="Maximum tokens of a source text, with [CLS] and [SEP]."
    )
    max_target_length: Length = Field(
        default=128, description="Maximum tokens of a generated text, with the end token."
    )
    long_texts: Literal["leave_out", "truncate"] = Field(
        default="leave_out",
        description="What is read of training pairs longer than max_source_length or"
        " max_target_length: leave_out, nothing; truncate, the beginning of both texts. Held-out"
        " texts are always truncated.",
    )
    average: Count = Field(
        default=5,
        description="Number of last evaluated checkpoints to average. The mean becomes the model"
        " if it is better than the best checkpoint; 1 always takes the best one.",
    )
    metric: Literal["auto", "loss"] = Field(default="auto", description=METRIC_HELP)
    patience: Count | None = Field(
        default=None,
        description="Stop after this many evaluations in a row without a better value. By default,"
        " training runs to the end.",
    )
    eval_examples: Count = Field(
        default=256,
        description="Number of held-out pairs, from the first, for which each evaluation generates"
        " texts.",
    )
    eval_every: Count | None = Field(
        default=None, description="Steps between evaluations; by default, 20 evaluations per run."
    )
    held_out: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        default=0.03,
        description="Share of the training pairs to hold out if --dev isn't given, at most"
        f" {MOST_HELD_OUT:,} of them.",
    )
    split_seed: Annotated[Seed | None, NO_FLAG] = Field(
        default=None, description="Seed that selects those pairs; by default seed."
    )

    kind: ClassVar[KindName]

    @model_validator(mode="before")
    @classmethod
    def _take_warm_defaults(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("model") is not None:
            return {**WARM_DEFAULTS, **values}
        return values

    @model_validator(mode="after")
    def _one_length_of_run(self) -> Self:
        given = [name for name in sorted(BUDGET_FIELDS) if getattr(self, name) is not None]
        if self.epochs is not None and given:
            raise ValueError(f"give one budget, not epochs and {given[0]}")
        return self


class TranslateSettings(Seq2SeqSettings):
    """Settings of `bertkit finetune translate`."""

    kind: ClassVar[KindName] = "translate"


class SummarizeSettings(Seq2SeqSettings):
    """Settings of `bertkit finetune summarize`."""

    kind: ClassVar[KindName] = "summarize"

    source_column: str = Field(default="text", description="Column of the source texts.")
    target_column: str = Field(default="summary", description="Column of the summaries.")
    max_source_length: Length = Field(
        default=512, description="Maximum tokens of a source text, with [CLS] and [SEP]."
    )
    long_texts: Literal["leave_out", "truncate"] = Field(
        default="truncate",
        description="What is read of training pairs longer than max_source_length or"
        " max_target_length: leave_out, nothing; truncate, the beginning of both texts.",
    )
    eval_examples: Count = Field(
        default=64,
        description="Number of held-out pairs, from the first, for which each evaluation generates"
        " texts.",
    )


@dataclass(frozen=True)
class Kind:
    """A kind of seq2seq task."""

    settings: type[Seq2SeqSettings]  # of its training
    summary: str
    decoding: DecodingSettings
    pipeline_tag: str  # the task's name on the Hub
    usage: str  # the command that reads a file, with the model's name in place of {}


KINDS = {
    "translate": Kind(
        settings=TranslateSettings,
        summary="Translate a text.",
        decoding=DecodingSettings(beams=5),
        pipeline_tag="translation",
        usage="translate {} --file texts.txt",
    ),
    "summarize": Kind(
        settings=SummarizeSettings,
        summary="Summarize a text.",
        decoding=DecodingSettings(beams=4, no_repeat_ngram=3),
        pipeline_tag="summarization",
        usage="summarize article.txt --model {}",
    ),
}
