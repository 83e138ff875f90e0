"""Classification of texts, or pairs of texts; read `task.py` first.

Source: Devlin et al. 2018, section 4.1: C, then a linear layer.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, ClassVar, Literal, Self

from pydantic import (
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from bertkit.base.settings import NO_FLAG, Count, Settings
from bertkit.tasks.columns import spell_label
from bertkit.tasks.settings import (
    OF_MANY_LABELS,
    OF_ONE_LABEL,
    TOP_K,
    USUAL_TEXT,
    ExplainAnswers,
    LabelColumn,
    TextSettings,
)

DEFAULT_THRESHOLD = 0.5


class ClassifySettings(TextSettings):
    """Settings of classification."""

    label_column: LabelColumn = None
    labels: str | None = Field(
        default=None,
        description="All labels in the order of their ids, separated by commas; a row with another"
        " label is then invalid. By default those of the training examples, sorted.",
    )
    multi_label: bool = Field(default=False, description="Allow several labels per text, or none.")
    label_separator: Annotated[str, Field(min_length=1)] = Field(
        default=",", description="Separator of several labels in a cell, with --multi-label."
    )
    class_weights: Literal["none", "balanced"] = Field(
        default="none",
        description="balanced: weight the loss so that all labels count equally over the training"
        " data.",
    )
    positive_label: Annotated[str | None, NO_FLAG] = Field(
        default=None,
        description="The label that the metric f1 is computed for; by default the second of two."
        " It is required for f1, unless labels are listed or are such as 0 and 1, or no and yes.",
    )
    few_shot: bool = Field(
        default=False,
        description="For 8 to 64 rows of each label: solve the head, and train the encoder on pairs"
        " of texts with the same label before, if cross-validation finds that better.",
    )
    threshold: float | Literal["best"] = Field(
        default=DEFAULT_THRESHOLD,
        description="Minimum probability of a predicted label, with --multi-label; best: the one"
        " with the best micro F1 on the held-out examples.",
    )

    usual_columns: ClassVar = {"text": USUAL_TEXT, "label": ("label", "labels")}
    metrics: ClassVar = ("auto", "loss", *dict.fromkeys((*OF_ONE_LABEL, *OF_MANY_LABELS)))

    @property
    def label_names(self) -> tuple[str, ...] | None:
        """The listed labels; None if none are listed."""
        return None if self.labels is None else tuple(map(spell_label, self.labels.split(",")))

    @property
    def separator(self) -> str | None:
        """What is between several labels in a cell; None if a cell has one."""
        return self.label_separator if self.multi_label else None

    def choose_metric(self, labels: Sequence[str] = ()) -> str:
        """Return the metric that is shown first: the default if the loss selects the model."""
        del labels
        if self.metric not in {"auto", "loss"}:
            return self.metric
        return "micro_f1" if self.multi_label else "accuracy"

    @field_validator("threshold", mode="wrap")
    @classmethod
    def _threshold_is_best_or_a_share(
        cls, value: str | float, read: ValidatorFunctionWrapHandler
    ) -> str | float:
        with suppress(ValidationError):
            found: str | float = read(value)
            if isinstance(found, str) or 0.0 < found < 1.0:
                return found
        raise ValueError(f"expected best, or a number between 0 and 1, got {value!r:.40}")

    @field_validator("positive_label")
    @classmethod
    def _positive_is_spelled_as_labels(cls, value: str | None) -> str | None:
        return None if value is None else spell_label(value)

    @model_validator(mode="after")
    def _metric_fits(self) -> Self:
        known = OF_MANY_LABELS if self.multi_label else OF_ONE_LABEL
        if self.choose_metric() not in known:
            how = "with" if self.multi_label else "without"
            raise ValueError(
                f"`metric` {self.metric} isn't one of those {how} `multi_label`: {', '.join(known)}"
            )
        if self.threshold == "best" and not self.multi_label:
            raise ValueError("`threshold` is for `multi_label`; a single label needs none")
        if self.few_shot and self.multi_label:
            raise ValueError("`few_shot` is for one label per text: leave out `multi_label`")
        return self

    @model_validator(mode="after")
    def _labels_differ(self) -> Self:
        names = self.label_names
        if names is not None:
            if "" in names or len(set(names)) < max(2, len(names)):
                raise ValueError(
                    f"`labels` must be two or more different ones, not {self.labels!r}"
                )
            if self.positive_label is not None and self.positive_label not in names:
                raise ValueError(f"`positive_label` {self.positive_label!r} isn't among the labels")
        return self


class ZeroShotAnswers(Settings):
    """Which labels of a prediction are given."""

    top_k: Count | None = Field(default=None, description=TOP_K)


class ClassifyAnswers(ExplainAnswers, ZeroShotAnswers):
    """Which labels of a prediction are given, and whether it is explained."""


LABEL = "{label}"  # what a template has in place of a label


class ZeroShotSettings(Settings):
    """Labels that no model has learned, and the sentence that each becomes."""

    labels: str | None = Field(
        default=None,
        description="Labels to choose from without any training, separated by commas; or a file"
        " with a column label and, to describe labels by sentences of your own, description.",
    )
    template: str | None = Field(
        default=None,
        description=f"Sentence made of a label without a description; {LABEL} in it stands for the"
        " label.",
    )

    @field_validator("template")
    @classmethod
    def _template_has_a_place(cls, value: str | None) -> str | None:
        if value is not None and LABEL not in value:
            raise ValueError(f"must have {LABEL} where the label stands, got {value!r:.80}")
        return value


class NamedZeroShot(ZeroShotSettings):
    """The same for the command, with the model that texts and labels are compared by."""

    example: ClassVar[str] = (  # a further call, for `--help`
        '\n\n        bertkit classify --labels "billing,delivery,praise" "Where is my parcel?"'
    )

    model: str | None = Field(
        default=None,
        description="With --labels: a sentence encoder, any other BERT, or a model trained on"
        " entailment, as a folder or an id of the Hub; by default the one that comes with bertkit.",
    )
