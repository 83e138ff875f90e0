"""Settings of studies."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from cyclopts import Parameter
from pydantic import Field, model_validator

from bertkit.base.settings import Settings
from bertkit.data.tables.parallel_settings import PairSettings
from bertkit.training.settings import Count, Positive


class StudySettings(Settings):
    """Settings of any study."""

    # Fields that are paths: a study is identified by the content of files, not their paths.
    places: ClassVar[frozenset[str]] = frozenset()

    size: Literal["small", "large"] = Field(
        "small",
        description="small is meant for two cores, large for a GPU: larger models, more training.",
    )
    minutes: Positive | None = Field(
        None,
        description="Minutes of training of each run, instead of the size's own budget; made into"
        " what is the same for all arms when the study begins.",
    )
    seeds: Count = Field(
        3, description="Runs of each arm, with other seeds. With fewer than 3 nothing is decided."
    )
    only: tuple[str, ...] = Field((), description="Run this arm alone; give it again for more.")
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N.")

    def list_places(self) -> list[str | Path]:
        """Return the paths of its input files."""
        values = [getattr(self, name) for name in sorted(self.places)]
        groups = [value if isinstance(value, tuple) else (value,) for value in values]
        return [path for group in groups for path in group if path is not None]


# Settings that don't affect figures: a study may be resumed with other values.
MAY_CHANGE = frozenset({"seeds", "only"})


class BudgetedStudySettings(StudySettings):
    """Settings of a study whose budget may be in tokens."""

    tokens: Count | None = Field(
        None, description="Tokens of training of each run, instead of the size's own number."
    )

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        if self.tokens is not None and self.minutes is not None:
            raise ValueError("give one budget, not tokens and minutes")
        return self


class PretrainingSettings(BudgetedStudySettings):
    """Settings of a study of pre-training."""

    places: ClassVar[frozenset[str]] = frozenset({"data", "labeled", "labeled_dev"})

    data: Path = Field(description="Folder that `bertkit prepare` wrote.")
    labeled: Path | None = Field(
        None,
        description="Labeled examples, as `bertkit finetune` reads them: each arm is fine-tuned on"
        " them, beside the tasks that are made from the shards.",
    )
    labeled_dev: Path | None = Field(
        None, description="Held-out ones; without it a share of --labeled is held out."
    )
    task: Literal["classify", "tag"] = Field(
        "classify", description="What the labels are: of texts, or of words."
    )

    @model_validator(mode="after")
    def _held_out_belongs_to_labeled(self) -> Self:
        if self.labeled_dev is not None and self.labeled is None:
            raise ValueError("labeled_dev belongs to labeled; give that too")
        return self


class RecurrentSettings(BudgetedStudySettings):
    """Settings of the study of attention and recurrent nets."""

    longest: Annotated[int, Field(ge=2, le=4096)] | None = Field(
        None, description="The largest distance; by default 128, or 512 with --size large."
    )


class FeaturesSettings(PretrainingSettings):
    """Settings of the study of features."""

    task: Literal["classify"] = Field("classify", description="What the labels are: of texts.")


class TranslationSettings(StudySettings, PairSettings):
    """Settings of the study of translation."""

    places: ClassVar[frozenset[str]] = frozenset({"train", "dev", "model"})

    train: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = Field(
        description="Two files, line n of one belonging to line n of the other, or one with a"
        " column for each side."
    )
    dev: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = Field(
        (), description="The same of held-out pairs; without it, a share of --train is held out."
    )
    model: str | None = Field(
        None,
        description="An encoder: both halves of one more arm begin with its weights, and all arms"
        " take its vocabulary.",
    )
    tokens: Count | None = Field(
        None,
        description="Tokens of training of each run, of both sides, instead of the size's own"
        " number.",
    )

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        if self.tokens is not None and self.minutes is not None:
            raise ValueError("give one budget, not tokens and minutes")
        return self
