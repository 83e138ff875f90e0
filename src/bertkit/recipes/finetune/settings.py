"""Settings of `bertkit finetune` that are common to all tasks."""

from typing import Annotated, Literal, Self

from cyclopts import Parameter
from pydantic import Field, field_validator, model_validator

from bertkit.base.settings import NO_FLAG, Count, Settings, in_panel, redefine
from bertkit.data.tables.settings import RecordSettings
from bertkit.training.settings import CHECKPOINTS, LoopSettings, OverwriteSettings, Positive, Seed

DEFAULT_EPOCHS = 3.0
# Fine-tuning on small data collapses with fewer steps than these, or without bias correction.
# Source: Mosbach et al. 2021, "On the Stability of Fine-tuning BERT"; Zhang et al. 2021,
# "Revisiting Few-sample BERT Fine-tuning".
ENOUGH_STEPS = 200
TOO_FEW_STEPS = 100
MOST_EPOCHS = 20.0
MAX_EPOCHS = 10_000.0  # upper limit of --epochs

SENTENCE_RATE = 1e-4  # for a sentence encoder: docs/results.md, "Small data"
LORA_FACTOR = 10.0  # of the default learning rate: benchmarks/bench_lora.py
# Settings that mean nothing where a layer is solved.
OF_TRAINING = (
    "epochs",
    "learning_rate",
    "layer_decay",
    "freeze",
    "lora",
    "dropout",
    "classifier_dropout",
    "patience",
    "eval_every",
)

Rate = Annotated[float, Field(ge=0.0, lt=1.0)]


@in_panel(*CHECKPOINTS, "eval_every")
class FineTuneSettings(LoopSettings, RecordSettings, OverwriteSettings):
    """Settings of `bertkit finetune`.

    The defaults are those of the paper (appendix A.3), but for few examples and sentence encoders.
    """

    epochs: Annotated[
        Annotated[float, Field(gt=0.0, le=MAX_EPOCHS)] | None,
        Parameter(
            show_default=f"{DEFAULT_EPOCHS:g}; up to {MOST_EPOCHS:g} if a new head would get under"
            f" {ENOUGH_STEPS} steps"
        ),
    ] = Field(default=None, description="Number of passes over the training examples.")
    learning_rate: Positive = redefine(
        LoopSettings,
        "learning_rate",
        3e-5,
        shown=f"3e-05, and {SENTENCE_RATE:g} for texts on a sentence encoder;"
        f" {LORA_FACTOR:g} times as much with --lora",
    )
    layer_decay: Annotated[float, Field(gt=0.0, le=1.0), NO_FLAG] = Field(
        default=1.0,
        description="Factor of the learning rate from each layer to the one below it; the head has"
        " the whole rate, the embeddings the lowest.",
    )
    freeze: str = Field(
        default="none",
        description="Weights that aren't trained: none; embeddings; a number, the embeddings and"
        " that many lowest layers; or encoder. --features last is a quicker frozen encoder.",
    )
    lora: Count | None = Field(
        default=None,
        description="Train updates of this rank of the encoder's matrices, and the head, instead of"
        " all weights (LoRA): less memory, small checkpoints. 8 is usual. The model has them merged"
        " in; adapter/ has them in PEFT's format.",
    )
    dropout: Annotated[Rate | None, Parameter(show_default="that of the model's config")] = Field(
        default=None, description="Dropout rate."
    )
    classifier_dropout: Annotated[Rate | None, NO_FLAG] = Field(
        default=None, description="Dropout before the head; by default that of the model's config."
    )
    features: Literal["last", "last_four"] | None = Field(
        default=None,
        description="Freeze the encoder, compute the hidden states of its last layer or its last"
        " four, concatenated, once, and solve a linear layer on them, in seconds.",
    )
    patience: Count | None = Field(
        default=None,
        description="Stop after this many evaluations in a row without a better value; by default"
        " never.",
    )
    held_out: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        default=0.1,
        description="Share of the data to hold out for evaluation if --dev isn't given.",
    )
    split_seed: Annotated[Seed | None, NO_FLAG] = Field(
        default=None, description="Seed that selects those examples; by default seed."
    )
    eval_every: Count | None = redefine(LoopSettings, "eval_every", shown="an epoch")

    @model_validator(mode="after")
    def _lora_freezes_the_encoder(self) -> Self:
        if self.lora is not None and self.freeze != "none":
            raise ValueError("`lora` freezes the encoder's own weights: leave out `freeze`")
        return self

    @model_validator(mode="after")
    def _features_leave_the_encoder_alone(self) -> Self:
        is_frozen = self.features is not None
        if is_frozen and (self.freeze != "none" or self.layer_decay != 1.0):
            raise ValueError(
                "`features` freezes the whole encoder: leave out `freeze` and `layer_decay`"
            )
        fields = type(self).model_fields
        given = [name for name in OF_TRAINING if getattr(self, name) != fields[name].default]
        if is_frozen and given:
            names = ", ".join(f"`{name}`" for name in given)
            raise ValueError(
                f"`features` solves the head without training steps: leave out {names}"
            )
        return self

    @property
    def dropout_rates(self) -> dict[str, float]:
        """The dropout rates that the config gets; others stay the model's."""
        rates: dict[str, float] = {}
        if self.dropout is not None:
            rates["hidden_dropout_prob"] = rates["attention_probs_dropout_prob"] = self.dropout
        if self.classifier_dropout is not None:
            rates["classifier_dropout"] = self.classifier_dropout
        return rates

    @property
    def undecided(self) -> dict[str, None]:
        """The settings whose default depends on the model: not known from the settings alone."""
        return {} if "learning_rate" in self.model_fields_set else {"learning_rate": None}

    @property
    def num_kept(self) -> int:
        """As in every run; by default one besides the best."""
        return self.keep or 1

    @field_validator("freeze")
    @classmethod
    def _freeze_is_known(cls, value: str) -> str:
        if value not in {"none", "embeddings", "encoder"} and not (
            value.isascii() and value.isdigit()
        ):
            raise ValueError("must be none, embeddings, encoder, or a number of layers")
        return value


class SeedsSettings(Settings):
    """How many runs are trained; the best of them becomes the model."""

    seeds: Count = Field(
        default=1,
        description="Number of runs, with seeds counted from --seed; keep the one with the best"
        " held-out metric.",
    )
