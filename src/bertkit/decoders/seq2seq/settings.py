"""Settings of training an encoder-decoder."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from cyclopts import Parameter
from pydantic import Field, JsonValue, model_validator

from bertkit.base.settings import NO_FLAG, Count, Settings, redefine
from bertkit.decoders.decoding.settings import DecodingSettings
from bertkit.decoders.generation.settings import KindName
from bertkit.decoders.seq2seq.pairs import PairSettings
from bertkit.inference.settings import LoadingSettings
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.tasks.settings import METRIC_HELP, TaskSettings
from bertkit.tokenization.settings import VocabularySettings
from bertkit.training.settings import (
    BUDGET_FIELDS,
    BudgetSettings,
    LoopSettings,
    OptimizationSettings,
    OverwriteSettings,
    Positive,
    Schedule,
    Seed,
)

# The default budget: enough for some ten thousand short pairs.
DEFAULT_MINUTES = 50.0
MOST_EPOCHS = 60.0
MAX_EPOCHS = 10_000.0  # upper limit of --epochs
MOST_HELD_OUT = 2_000  # maximum number of training pairs to hold out

Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
Length = Annotated[int, Field(ge=4, le=4096)]

WARM_DEFAULTS = {"learning_rate": 1e-4, "dropout": 0.1}
NEW_MODEL_FIELDS = ("size", "vocab_size", "lowercase")


class ModelSettings(Settings):
    """The size of a new model, or the encoder to start from."""

    size: str | None = redefine(
        PretrainSettings,
        "size",
        None,
        shown="3 layers of 256 features, 4 heads, 512 features in between",
    )
    model: str | None = Field(
        default=None,
        description="Encoder to start both halves from, with its vocabulary: a model folder of any"
        " format, a run, or the id of a model of the Hub.",
    )
    revision: str | None = redefine(LoadingSettings, "revision")
    vocab_size: Annotated[int, Field(ge=64, le=1_000_000)] = redefine(
        VocabularySettings, "vocab_size", 6000
    )
    lowercase: bool = redefine(VocabularySettings, "lowercase", False)
    dropout: Annotated[Rate, Parameter(show_default="0.2; 0.1 with --model")] = Field(
        default=0.2, description="Dropout rate."
    )

    @model_validator(mode="after")
    def _one_beginning(self) -> Self:
        if self.model is None:
            if self.revision is not None:
                raise ValueError("`revision` needs `model`")
            return self
        defaults = type(self).model_fields
        given = [name for name in NEW_MODEL_FIELDS if getattr(self, name) != defaults[name].default]
        if given:
            names = " and ".join(f"`{name}`" for name in given)
            raise ValueError(f"{names}: that is for a new model, without `model`")
        return self


class Seq2SeqSettings(
    ModelSettings, PairSettings, OptimizationSettings, BudgetSettings, OverwriteSettings
):
    """Settings of `bertkit finetune translate` and `bertkit finetune summarize`."""

    epochs: Annotated[
        Annotated[float, Field(gt=0.0, le=MAX_EPOCHS)] | None,
        Parameter(show_default=f"{DEFAULT_MINUTES:g} minutes, but at most {MOST_EPOCHS:g} epochs"),
    ] = Field(default=None, description="Number of passes over the training examples.")
    minutes: Positive | None = redefine(BudgetSettings, "minutes", shown="as --epochs says")
    tokens_per_batch: Annotated[int, Field(ge=16)] = Field(
        default=4096, description="Tokens per optimizer step, source and target together."
    )
    accumulate: Count = redefine(LoopSettings, "accumulate")
    label_smoothing: Annotated[Rate, NO_FLAG] = Field(
        default=0.1,
        description="Label smoothing: the share of probability spread evenly over all words.",
    )
    learning_rate: Positive = redefine(
        OptimizationSettings, "learning_rate", 1e-3, shown="0.001; 0.0001 with --model"
    )
    schedule: Schedule = redefine(OptimizationSettings, "schedule", "inverse_sqrt")
    beta2: float = redefine(OptimizationSettings, "beta2", 0.98)
    weight_decay: float = redefine(OptimizationSettings, "weight_decay", 1e-4)
    max_length: Length = redefine(TaskSettings, "max_length", 128)
    max_tokens: Length = redefine(DecodingSettings, "max_tokens", 128)
    long_texts: Literal["leave_out", "truncate"] = Field(
        default="leave_out",
        description="What is read of training pairs longer than --max-length or --max-tokens:"
        " leave_out, nothing; truncate, the beginning of both texts. Held-out texts are always"
        " truncated.",
    )
    average: Count = Field(
        default=5,
        description="Number of last evaluated checkpoints to average. The mean becomes the model"
        " if it is better than the best checkpoint; 1 always takes the best one.",
    )
    metric: Literal["auto", "loss"] = Field(default="auto", description=METRIC_HELP)
    patience: Count | None = redefine(FineTuneSettings, "patience")
    eval_examples: Count = redefine(PretrainSettings, "eval_examples", 256)
    eval_every: Count | None = redefine(
        OptimizationSettings, "eval_every", shown="a twentieth of the run"
    )
    held_out: float = redefine(
        FineTuneSettings, "held_out", 0.03, shown=f"0.03, and at most {MOST_HELD_OUT:,} examples"
    )
    split_seed: Annotated[Seed | None, NO_FLAG] = redefine(FineTuneSettings, "split_seed")

    kind: ClassVar[KindName]

    @model_validator(mode="before")
    @classmethod
    def _take_warm_defaults(cls, values: JsonValue) -> JsonValue:
        if isinstance(values, dict) and values.get("model") is not None:
            return {**WARM_DEFAULTS, **values}
        return values

    @model_validator(mode="after")
    def _one_length_of_run(self) -> Self:
        given = [name for name in sorted(BUDGET_FIELDS) if getattr(self, name) is not None]
        if self.epochs is not None and given:
            raise ValueError(f"give one budget, not `epochs` and `{given[0]}`")
        return self


class TranslateSettings(Seq2SeqSettings):
    """Settings of `bertkit finetune translate`."""

    kind: ClassVar[KindName] = "translate"


class SummarizeSettings(Seq2SeqSettings):
    """Settings of `bertkit finetune summarize`."""

    kind: ClassVar[KindName] = "summarize"

    source_column: str = redefine(PairSettings, "source_column", "text")
    target_column: str = redefine(PairSettings, "target_column", "summary")
    max_length: Length = redefine(Seq2SeqSettings, "max_length", 512)
    long_texts: Literal["leave_out", "truncate"] = redefine(
        Seq2SeqSettings, "long_texts", "truncate"
    )
    eval_examples: Count = redefine(Seq2SeqSettings, "eval_examples", 64)


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
