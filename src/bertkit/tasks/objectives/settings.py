"""The settings of the pre-training objectives."""

from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from bertkit.base.settings import NO_FLAG, Settings
from bertkit.base.wings import OBJECTIVES, has_wing

ADDED = {name: added for name, added in OBJECTIVES.items() if has_wing(added.objective)}
ADDED_HELP = "".join(f"; {name}: {added.help}" for name, added in ADDED.items())
OBJECTIVE_HELP = (
    "What is predicted. mlm: masked words only; bert: masked words and next sentence"
    f"{ADDED_HELP}. A model to start from keeps its own."
)
if TYPE_CHECKING:
    ObjectiveName: TypeAlias = str
else:
    ObjectiveName = Literal[("bert", "mlm", *ADDED)]


Share = Annotated[float, Field(ge=0.0, le=1.0)]


class MaskingSettings(Settings):
    """How much is masked, and by what."""

    mask_rate: Share = Field(
        default=0.15, description="Share of a text's tokens to mask, and to predict."
    )
    mask_token_share: Annotated[Share, NO_FLAG] = Field(
        default=0.8, description="Fraction of the selected tokens replaced by [MASK]."
    )
    random_token_share: Annotated[Share, NO_FLAG] = Field(
        default=0.1,
        description="Fraction of the selected tokens replaced by a random word; the rest stay as"
        " they are.",
    )
    whole_words: bool = Field(
        default=False, description="Mask all pieces of a word together (whole-word masking)."
    )


class ObjectiveSettings(MaskingSettings):
    """What is predicted, and of which examples."""

    objective: ObjectiveName = Field(
        default="bert",
        description=OBJECTIVE_HELP,
    )
    max_length: Annotated[int, Field(ge=8, le=512)] = Field(
        default=128, description="Maximum tokens of a text or window, with special tokens."
    )
    short_rate: Annotated[Share, NO_FLAG] = Field(
        default=0.1, description="Share of examples that are truncated to a random shorter length."
    )

    @model_validator(mode="after")
    def _masking_has_a_use(self) -> Self:
        masking = MaskingSettings.model_fields.items()
        given = [name for name, field in masking if getattr(self, name) != field.default]
        if given and self.objective in ADDED and not ADDED[self.objective].masks:
            raise ValueError(
                f"{given[0]} is about masking, which the objective {self.objective} doesn't use;"
                " leave it out"
            )
        return self
