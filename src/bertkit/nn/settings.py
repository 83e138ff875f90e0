"""The setting that masks attention."""

from pydantic import Field

from bertkit.base.settings import Settings


class MaskSettings(Settings):
    """Which tokens a token may attend to."""

    causal: bool = Field(
        default=False,
        description="Apply the left-to-right mask: no token attends to later ones. Of a model, in"
        " this head alone; a left-to-right model always has it.",
    )
