"""Settings of attention."""

from pydantic import Field

from bertkit.base.settings import Settings


class MaskSettings(Settings):
    """The mask of attention."""

    causal: bool = Field(
        default=False,
        description="Apply the left-to-right mask: no token attends to later ones. Of a model, in"
        " this head alone; a left-to-right model always has it.",
    )

    @property
    def mask_name(self) -> str:
        """The name of the mask in `bertkit.nn.masks.MASKS`."""
        return "left to right" if self.causal else ""
