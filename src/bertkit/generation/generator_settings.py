"""Settings for continuing texts with a left-to-right model."""

from typing import Annotated

from pydantic import Field

from bertkit.decoding.settings import DecodingSettings


class GeneratorSettings(DecodingSettings):
    """How the next tokens are chosen; by default the likeliest, 64 at most."""

    max_tokens: Annotated[int, Field(ge=1)] | None = Field(
        64,
        description="Maximum number of tokens to generate, the end token included; never more"
        " than the model's maximum length.",
    )
