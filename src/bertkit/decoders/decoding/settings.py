"""Settings of decoding."""

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, create_model, model_validator

from bertkit.base.errors import SettingsError
from bertkit.base.settings import Count, Settings, validate

USUAL_TOKENS = 64  # that are written for a text where nothing limits them
SAMPLING = ("temperature", "top_k", "top_p")  # any of them samples
LISTED = "`temperature`, `top_k` or `top_p`"


class DecodingSettings(Settings):
    """How the next tokens are chosen: the likeliest, by beam search, or drawn."""

    beams: int = Field(
        default=1,
        ge=1,
        le=1024,
        description="Number of hypotheses of a beam search; 1 takes the likeliest token each time.",
    )
    length_penalty: float = Field(
        default=1.0,
        ge=-10,
        le=10,
        description="Exponent of the length by which a log probability is divided. A larger value"
        " gives longer answers: 0 compares the probabilities themselves, which favors short ones, 1"
        " the means over the tokens.",
    )
    no_repeat_ngram: int = Field(
        default=0,
        ge=0,
        description="Forbid repeated n-grams of this size; 0 allows them.",
    )
    min_tokens: int = Field(
        default=0, ge=0, description="Minimum number of tokens to generate, if there is room."
    )
    max_tokens: Count | None = Field(
        default=None,
        description="Maximum number of tokens to generate, the end token included.",
    )
    # a smaller temperature makes the logits infinite
    temperature: Annotated[float, Field(ge=0.001, le=1000)] | None = Field(
        default=None,
        description="Sample each token, with scores divided by this: 1 takes the model's"
        " probabilities, less prefers likely tokens.",
    )
    top_k: Count | None = Field(
        default=None, description="Sample among this many likeliest tokens."
    )
    top_p: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None,
        description="Sample among the likeliest tokens that have this probability together.",
    )
    num_answers: int = Field(
        default=1, ge=1, le=1024, description="Answers to each text, the best first."
    )
    seed: int = Field(default=0, ge=0, description="Seed of all random choices.")

    @property
    def is_sampling(self) -> bool:
        """Whether tokens are sampled: `temperature`, `top_k` or `top_p` is set."""
        return any(getattr(self, name) is not None for name in SAMPLING)

    @property
    def num_rows(self) -> int:
        """The number of sequences that are decoded in parallel for each text."""
        return max(self.beams, self.num_answers)

    @property
    def written_tokens(self) -> int:
        """The tokens that are written for a text in all its rows, at most or usually."""
        return self.num_rows * (self.max_tokens or USUAL_TOKENS)

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.is_sampling and self.beams > 1:
            raise ValueError(f"`beams` search, and {LISTED} sample; choose one of them")
        if not self.is_sampling and self.num_answers > self.beams:
            raise ValueError(
                f"`num_answers` ({self.num_answers}) must be at most `beams` ({self.beams}), or"
                f" {LISTED} be given"
            )
        if self.max_tokens is not None and self.min_tokens >= self.max_tokens:
            raise ValueError(
                f"`min_tokens` ({self.min_tokens}) must be less than `max_tokens`"
                f" ({self.max_tokens}), which counts the end"
            )
        return self


# `DecodingSettings` in which all fields are optional; bounds stay.
if TYPE_CHECKING:
    DecodingOverrides = DecodingSettings
else:
    DecodingOverrides = create_model(
        "DecodingOverrides",
        __base__=Settings,
        **{
            name: (
                Annotated[(info.annotation, None, *info.metadata)] | None,
                Field(default=None, description=info.description),
            )
            for name, info in DecodingSettings.model_fields.items()
        },
    )


def override_decoding(settings: DecodingSettings, changes: Settings) -> DecodingSettings:
    """Apply the changes that were set; sampling without `beams` sets beams to 1."""
    given = changes.model_dump(include=changes.model_fields_set, exclude_none=True)
    if not given.keys().isdisjoint(SAMPLING):
        given = {"beams": 1, **given}
    values = {**settings.model_dump(), **given}
    changed = validate(DecodingSettings, values, "how it is written")
    check_seed(changed, given.get("seed", 0))
    return changed


def check_seed(settings: DecodingSettings, seed: int) -> None:
    """Reject a seed that has no effect because nothing is sampled."""
    if seed and not settings.is_sampling:
        raise SettingsError("seed is for sampling; it needs temperature, top_k or top_p")
