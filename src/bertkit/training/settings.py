"""Settings shared by training runs: optimizer, evaluation, checkpoints, device and budget."""

import math
from typing import Annotated, Literal, Self, TypeAlias

from cyclopts import Parameter
from pydantic import Field, JsonValue, model_validator

from bertkit.base.settings import NO_FLAG, Count, Settings, in_panel

Schedule = Literal["linear", "cosine", "constant", "inverse_sqrt"]

Positive = Annotated[float, Field(gt=0.0)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
TrainingPrecision: TypeAlias = Literal["auto", "fp32", "bf16"]

DEFAULT_MINUTES = 30.0
NUM_EVALUATIONS = 10
CHECKPOINTS = ("Evaluations and checkpoints", 6)  # a panel of the help
# A resumed run may change these settings and no others.
BUDGET_FIELDS = frozenset({"steps", "tokens", "minutes"})
MAY_CHANGE = BUDGET_FIELDS | {
    "checkpoint_activations",
    "checkpoint_every",
    "fsdp",
    "keep",
}


class OverwriteSettings(Settings):
    """What becomes of an output that holds another run; no part of a run's record."""

    overwrite: bool = Field(
        default=False,
        exclude=True,
        description="Replace an existing output.",
    )


class BudgetSettings(Settings):
    """The length of a run, unless its data determine it."""

    steps: Count | None = Field(default=None, description="Budget in optimizer steps.")
    tokens: Count | None = Field(
        default=None,
        description="Budget in tokens without padding, converted to steps when the run starts.",
    )
    minutes: Annotated[
        Positive | None, Parameter(show_default=f"{DEFAULT_MINUTES:g}, without another budget")
    ] = Field(
        default=None,
        description="Minutes to train, with evaluations and checkpoints, kept within 5 %: the"
        " number of steps is planned by measuring a few, and again while the run trains.",
    )

    def dump_with_fixed_budget(self) -> dict[str, JsonValue]:
        """Return all settings for a run's record, with the budget as a setting that can't change.

        For runs whose schedule or data order follows from their length.
        """
        values = self.model_dump(mode="json", exclude=set(BUDGET_FIELDS))
        return {**values, "budget": {name: getattr(self, name) for name in sorted(BUDGET_FIELDS)}}

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        given = [name for name in sorted(BUDGET_FIELDS) if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"give one budget, not {' and '.join(f'`{name}`' for name in given)}")
        return self


@in_panel(
    "Optimizer",
    5,
    "warmup",
    "schedule",
    "weight_decay",
    "beta2",
    "adam_epsilon",
    "clip_norm",
)
@in_panel(*CHECKPOINTS, "eval_every", "checkpoint_every", "keep")
class OptimizationSettings(Settings):
    """Settings of the optimizer and the loop, for every recipe."""

    learning_rate: Positive = Field(default=1e-4, description="Peak learning rate.")
    warmup: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.1,
        description="Share of the steps in which the learning rate rises to its peak (warm-up).",
    )
    schedule: Schedule = Field(
        default="linear",
        description="How the learning rate falls after its peak; inverse_sqrt falls with one over"
        " the square root of the step and doesn't reach 0.",
    )
    weight_decay: Annotated[float, Field(ge=0.0)] = Field(
        default=0.01, description="AdamW's weight decay; biases and layer norms have none."
    )
    beta1: Annotated[float, Field(ge=0.0, lt=1.0), NO_FLAG] = Field(
        default=0.9, description="AdamW's beta1, the decay rate of the mean gradient."
    )
    beta2: Annotated[float, Field(ge=0.0, lt=1.0), NO_FLAG] = Field(
        default=0.999, description="AdamW's beta2, the decay rate of the mean squared gradient."
    )
    adam_epsilon: Positive = Field(
        default=1e-6, description="AdamW's epsilon, which avoids division by zero."
    )
    clip_norm: Annotated[Positive, NO_FLAG] = Field(
        default=1.0, description="Maximum gradient norm; larger gradients are scaled down."
    )
    seed: Seed = Field(default=0, description="Seed of all random choices.")
    eval_every: Annotated[Count | None, Parameter(show_default="a tenth of the run")] = Field(
        default=None, description="Number of steps between evaluations."
    )
    checkpoint_every: Count | None = Field(
        default=None,
        description="Number of steps between checkpoints; by default one every five minutes.",
    )
    keep: Count | None = Field(
        default=None,
        description="Number of newest checkpoints to keep. By default 2; `bertkit finetune` removes"
        " all of them at its end, unless this is given.",
    )
    fsdp: bool = Field(
        default=False,
        description="Divide weights, gradients and the optimizer's state among the processes that"
        " torchrun started (FSDP2), for a model that doesn't fit on one GPU.",
    )
    device: str = Field(default="auto", description="auto, cpu, cuda or cuda:N.")
    precision: TrainingPrecision = Field(
        default="auto",
        description="Precision of matrix products. auto takes bf16 where training was measured to"
        " be faster, else fp32; `bertkit devices` shows which. A resumed run keeps its own.",
    )

    def learning_rate_at(self, step: int, num_steps: int) -> float:
        """Return the learning rate of one step, counted from 0; the first step's is above 0.

        linear and cosine reach 0 just after the last of `num_steps`; inverse_sqrt doesn't: it
        halves each time the number of steps quadruples.
        """
        peak, warmup_steps = self.learning_rate, round(self.warmup * num_steps)
        if step < warmup_steps:
            return peak * (step + 1) / (warmup_steps + 1)
        progress = (step - warmup_steps) / max(1, num_steps - warmup_steps)
        if self.schedule == "constant":
            return peak
        if self.schedule == "inverse_sqrt":
            return peak * math.sqrt((warmup_steps + 1) / (step + 1))
        if self.schedule == "cosine":
            return peak * 0.5 * (1.0 + math.cos(math.pi * progress))
        return peak * (1.0 - progress)

    @property
    def num_kept(self) -> int:
        """The number of newest checkpoints that are kept while the run trains."""
        return self.keep or 2

    def evaluation_interval(self, num_steps: int) -> int:
        """Return the number of steps between evaluations."""
        return self.eval_every or -(-num_steps // NUM_EVALUATIONS)


class LoopSettings(OptimizationSettings):
    """`OptimizationSettings` with a batch size in sequences."""

    batch_size: Count = Field(default=32, description="Number of examples per optimizer step.")
    accumulate: Count = Field(
        default=1,
        description="Number of micro-batches of a step, to save memory; processes that torchrun"
        " started divide them.",
    )

    @model_validator(mode="after")
    def _not_more_parts_than_sequences(self) -> Self:
        if self.accumulate > self.batch_size:
            raise ValueError(
                f"`accumulate` ({self.accumulate}) can't be more than `batch_size`"
                f" ({self.batch_size})"
            )
        return self
