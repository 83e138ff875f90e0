"""Settings of `bertkit pretrain`."""

from typing import Annotated, Any, Self

from cyclopts import Parameter
from pydantic import Field, model_validator
from pydantic.config import JsonDict

from bertkit.objectives.settings import ObjectiveSettings
from bertkit.training.settings import Count, Positive, TrainingSettings

# Tuned peak learning rate and batch size by model; see docs/results.md.
TUNED: dict[str, dict[str, Any]] = {
    "tiny": {"learning_rate": 1e-3, "batch_size": 16},
    "mini": {"learning_rate": 1e-3, "batch_size": 32},
}


DEFAULT_MODEL = "mini"
BY_MODEL: JsonDict = {"depends_on": "model"}  # for the reference: there is no single default


def _describe_tuned(name: str, otherwise: float) -> str:
    """Describe the defaults of a setting, for its help."""
    values = ", ".join(f"{tuned[name]:g} for {model}" for model, tuned in TUNED.items())
    return f"by default {values}, {otherwise:g} for any other model."


class PretrainSettings(ObjectiveSettings, TrainingSettings):
    """Settings of `bertkit pretrain`."""

    model: str | None = Field(
        DEFAULT_MODEL,
        description="tiny, mini, small, medium, base, large, or a config.json with other sizes.",
    )
    start_from: Annotated[str | None, Parameter(name="from")] = Field(
        None,
        description="Start from these weights instead of random ones: a model folder of any"
        " format, a run, or the id of a model on the Hub.",
    )
    from_revision: str | None = Field(
        None, description="Branch, tag or commit, if --from is a model on the Hub."
    )
    new_heads: bool = Field(
        False,
        description="Initialize heads that --from lacks; without this flag, they are an error.",
    )
    batch_size: Count = Field(
        32,
        description=f"Sequences per optimizer step; {_describe_tuned('batch_size', 32)}",
        json_schema_extra=BY_MODEL,
    )
    learning_rate: Positive = Field(
        1e-4,
        description=f"Peak learning rate; {_describe_tuned('learning_rate', 1e-4)}",
        json_schema_extra=BY_MODEL,
    )
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        0.1, description="Dropout on features and on attention weights."
    )
    eval_sequences: Annotated[int, Field(ge=1)] = Field(
        256, description="Held-out examples per evaluation, the same ones every time."
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        model = values.get("model", DEFAULT_MODEL if values.get("start_from") is None else None)
        return {**TUNED.get(str(model), {}), **values, "model": model}

    @model_validator(mode="after")
    def _one_beginning(self) -> Self:
        if (self.model is None) == (self.start_from is None):
            raise ValueError("give either a model or start_from (--from)")
        if self.start_from is None and (self.from_revision is not None or self.new_heads):
            raise ValueError("from_revision and new_heads need start_from (--from)")
        return self

    @property
    def dropout_rates(self) -> dict[str, float]:
        """`dropout` under the keys of a model's config."""
        return {
            "hidden_dropout_prob": self.dropout,
            "attention_probs_dropout_prob": self.dropout,
        }
