"""Settings of attention views, and of the arithmetic of one head."""

from typing import Annotated, Literal, Self

from cyclopts import Parameter
from pydantic import Field, model_validator

from bertkit.base.settings import Settings, in_panel
from bertkit.nn.settings import MaskSettings

Head = Annotated[
    int | None,
    Field(ge=1, description="Head of that layer, from 1; by default the most telling one."),
]


class ViewSettings(Settings):
    """The content of an attention view and its initial selection."""

    attention: Literal["cross", "encoder", "decoder"] | None = Field(
        default=None,
        description="For a model that writes a target text for a source text, the attention that is"
        " shown initially, and in figures and numbers: from target to source (cross), within the"
        " source (encoder), or within the target (decoder). By default cross.",
    )
    layer: int | None = Field(
        default=None,
        ge=1,
        description="Layer that is shown initially, from 1; layer 1 reads the embeddings. By"
        " default the one with the most telling head.",
    )
    head: Head = None
    token: str | None = Field(
        default=None,
        description="Token whose attention is shown initially: its text (such as it or ##ing; the"
        " first occurrence is taken) or its number, where 1 is [CLS]; by default the most telling"
        " one. In attention to a source text, the target token after which the next one is"
        " predicted.",
    )
    without: str | None = Field(
        default=None,
        description="Heads to switch off, such as 5.3,5.4 (layer 5, heads 3 and 4); only of a"
        " BERT.",
    )
    views: str | None = Field(
        default=None,
        description="Views of the page, such as heads,neurons, in that order; by default all that"
        " the model supports.",
    )
    neurons: bool = Field(
        default=False,
        description="Include the query, key and value vectors for texts of any length; by default"
        " only up to 128 tokens, because they are most of the page's size.",
    )
    importance: bool = Field(
        default=True,
        description="Measure the importance of each head by switching it off, which takes one pass"
        " per head; --no-importance skips that.",
    )
    read_mask: bool = Field(
        default=False,
        description="Read [MASK] as the mask token, for masked language models; by default it is"
        " ordinary text.",
    )

    @property
    def bundled_part(self) -> Literal["words", "vectors"]:
        """The bundled weights to view: with the head for words only where it is asked for."""
        names = (self.views or "").split(",")
        return "words" if self.read_mask or "words" in map(str.strip, names) else "vectors"

    @model_validator(mode="after")
    def _head_is_of_a_layer(self) -> Self:
        if self.head is not None and self.layer is None:
            raise ValueError(f"head {self.head} needs a layer; set layer as well")
        return self


Matrix = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
PROJECTED = ("query", "key", "value")


@in_panel("Typed matrices", 2)
class MatrixSettings(Settings):
    """Matrices typed as rows of numbers: `1 0 1; 0 2 0`, or a row per line."""

    x: Matrix = Field(
        default=None,
        description="The tokens' vectors X, a row per token: rows are separated by ; and numbers by"
        " spaces, such as '1 0 1; 0 2 0'.",
    )
    query_weights: Matrix = Field(
        default=None,
        description="W_q, a row per feature of X: Q = X · W_q; by default Q = X.",
    )
    key_weights: Matrix = Field(default=None, description="W_k: K = X · W_k; by default K = X.")
    value_weights: Matrix = Field(default=None, description="W_v: V = X · W_v; by default V = X.")
    query: Matrix = Field(
        default=None,
        description="Q itself, a row per token, in place of X; needs key and value as well.",
    )
    key: Matrix = Field(default=None, description="K itself.")
    value: Matrix = Field(default=None, description="V itself.")
    tokens: str | None = Field(
        default=None,
        description="Names of the tokens, such as 'cat mat it'; by default their numbers.",
    )


class AttentionSettings(MaskSettings, MatrixSettings):
    """The head whose attention is computed step by step, and what is left out."""

    layer: int | None = Field(
        default=None,
        ge=1,
        description="Layer of the model, from 1; by default the one with the most telling head, on"
        " which `bertkit view` opens.",
    )
    head: Head = None
    token: str | None = Field(
        default=None,
        description="Show only the attention of this token: its text (such as it or ##ing; the"
        " first occurrence is taken) or its number, where 1 is [CLS].",
    )
    top_k: int = Field(
        default=8, ge=1, description="Number of weights of --token, the largest first."
    )
    scale: bool = Field(
        default=True, description="Divide the scores by √d; --no-scale shows what happens without."
    )
