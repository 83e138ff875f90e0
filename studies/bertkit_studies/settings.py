"""Settings of studies."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from cyclopts import Parameter
from pydantic import Field, model_validator

from bertkit.base.settings import Count, Settings
from bertkit.decoders.seq2seq.pairs import PairSettings
from bertkit.training.settings import Positive


class StudySettings(Settings):
    """Settings of any study."""

    # Fields that are paths: a study is identified by the content of files, not their paths.
    places: ClassVar[frozenset[str]] = frozenset()

    size: Literal["small", "large"] = Field(
        "small",
        description="small is for two cores, large for a GPU (larger models, more training).",
    )
    minutes: Positive | None = Field(
        None,
        description="Minutes of training per run, instead of the size's budget; converted once to"
        " a budget that is the same for all arms.",
    )
    seeds: Count = Field(
        3, description="Runs per arm, with different seeds. At least 3 are needed for a verdict."
    )
    only: tuple[str, ...] = Field((), description="Run only this arm; may be repeated.")
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
        None, description="Training tokens per run, instead of the size's number."
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
        description="Labeled examples, as for `bertkit finetune`; each arm is also fine-tuned on"
        " them, besides the tasks made from the shards.",
    )
    labeled_dev: Path | None = Field(
        None, description="Held-out labeled examples; without it, a share of --labeled is held out."
    )
    task: Literal["classify", "tag"] = Field(
        "classify", description="Kind of labels: of texts, or of words."
    )

    @model_validator(mode="after")
    def _held_out_belongs_to_labeled(self) -> Self:
        if self.labeled_dev is not None and self.labeled is None:
            raise ValueError("labeled_dev needs labeled")
        return self


class RecurrentSettings(BudgetedStudySettings):
    """Settings of the study of attention and recurrent nets."""

    longest: Annotated[int, Field(ge=2, le=4096)] | None = Field(
        None, description="The largest distance; by default 128, or 512 with --size large."
    )


class FeaturesSettings(PretrainingSettings):
    """Settings of the study of features."""

    task: Literal["classify"] = Field("classify", description="Kind of labels: of texts.")


class TranslationSettings(StudySettings, PairSettings):
    """Settings of the study of translation."""

    places: ClassVar[frozenset[str]] = frozenset({"train", "dev", "model"})

    train: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = Field(
        description="Two files whose lines correspond, or one file with a column for each side."
    )
    dev: Annotated[tuple[Path, ...], Parameter(consume_multiple=True)] = Field(
        (),
        description="Held-out pairs, in the same form; without it, a share of --train is held out.",
    )
    model: str | None = Field(
        None,
        description="An encoder that initializes both halves of an additional arm; all arms use"
        " its vocabulary.",
    )
    tokens: Count | None = Field(
        None,
        description="Training tokens per run, source and target, instead of the size's number.",
    )

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        if self.tokens is not None and self.minutes is not None:
            raise ValueError("give one budget, not tokens and minutes")
        return self
