"""Settings of attention views."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bertkit.base.settings import Settings


class ViewSettings(Settings):
    """What an attention view shows, and where it begins."""

    attention: Literal["cross", "encoder", "decoder"] | None = Field(
        None,
        description="Of an encoder-decoder, the attention that is shown at first, and that figures"
        " and numbers are of: from what is written to what is read (cross), within what is read"
        " (encoder), or within what is written (decoder). By default cross.",
    )
    layer: int | None = Field(
        None, ge=1, description="Layer that is shown at first, from 1; the first reads the words."
    )
    head: int | None = Field(
        None, ge=1, description="Head of that layer, from 1; without it the page shows all of them."
    )
    token: str | None = Field(
        None,
        description="Token whose attention is shown at first: as the model reads it (such as it,"
        " or ##ing), the first of its kind, or its number from 1, which is [CLS]. In"
        " cross-attention the token that was written last, while the next one is chosen.",
    )
    without: str | None = Field(
        None,
        description="Heads to switch off, such as 5.3,5.4 (layer 5, heads 3 and 4); not of an"
        " encoder-decoder.",
    )
    views: str | None = Field(
        None,
        description="Views of the page, such as heads,neurons, in that order; without it all that"
        " suit the model.",
    )
    neurons: bool = Field(
        False,
        description="Keep the vectors behind the attention (query, key and value) for texts of any"
        " length; without it for up to 128 tokens, because they are most of the page.",
    )
    importance: bool = Field(
        True,
        description="Measure how much each head matters by switching it off, which takes a pass of"
        " the model for each; --no-importance leaves that out.",
    )
    read_mask: bool = Field(
        False,
        description="Read [MASK] as a blank, for models that fill words in; without it, it is text"
        " like any other.",
    )

    @model_validator(mode="after")
    def _head_is_of_a_layer(self) -> Self:
        if self.head is not None and self.layer is None:
            raise ValueError(f"head {self.head} is of a layer: say which, by layer")
        return self
