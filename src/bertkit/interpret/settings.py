"""Settings of attention views, and of the arithmetic of one head."""

import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from cyclopts import Parameter
from pydantic import Field, field_validator, model_validator

from bertkit.base.errors import SettingsError, pluralize
from bertkit.base.files import read_text
from bertkit.base.json_files import parse_json
from bertkit.base.settings import Count, Settings, redefine, validate
from bertkit.inference.settings import FillOptions
from bertkit.nn.settings import MaskSettings

MASK = "[MASK]"  # in a text, the mask token


class HeadSettings(Settings):
    """A head and a token of a model."""

    layer: Annotated[int | None, Parameter(show_default="the one with the most telling head")] = (
        Field(default=None, description="Layer, from 1; -1 is the last.")
    )
    head: Count | None = Field(
        default=None, description="Head of that layer, from 1; by default the most telling one."
    )
    token: str | None = Field(
        default=None,
        description="Token whose attention is shown: its text (such as it or ##ing; the first"
        " occurrence is taken) or its number, where 1 is [CLS]. In attention to a source text, the"
        " target token after which the next one is predicted.",
    )

    @field_validator("layer")
    @classmethod
    def _is_a_block(cls, layer: int | None) -> int | None:
        if layer == 0:
            raise ValueError("attention is in layers 1 (the first) to -1 (the last), not in 0")
        return layer


class ViewSettings(HeadSettings):
    """The content of an attention view and its initial selection."""

    attention: Literal["cross", "encoder", "decoder"] | None = Field(
        default=None,
        description="Attention of a model with an encoder and a decoder that is shown initially,"
        " and in figures and numbers: from target to source (cross, the default), within the"
        " source (encoder), or within the target (decoder).",
    )
    without: str | None = Field(
        default=None,
        description="Heads to switch off, such as 5.3,5.4 (layer 5, heads 3 and 4); only of a"
        " BERT.",
    )
    views: str | None = Field(
        default=None,
        description="Views of the page, such as heads,importance, in that order; by default all"
        " that the model supports. Importance takes a pass for each head. Naming neurons includes"
        " the query, key and value vectors of a text of more than 128 tokens.",
    )

    @property
    def view_names(self) -> list[str] | None:
        """The names of the requested views; None for all."""
        if self.views is None:
            return None
        return list(filter(None, map(str.strip, self.views.split(","))))

    def find_bundled_part(self, *texts: str) -> Literal["words", "vectors"]:
        """Return the bundled weights to view: with the head for words only where it is of use."""
        is_asked = "words" in (self.view_names or ()) or any(MASK in text for text in texts)
        return "words" if is_asked else "vectors"

    @model_validator(mode="after")
    def _head_is_of_a_layer(self) -> Self:
        if self.head is not None and self.layer is None:
            raise ValueError(f"head {self.head} needs a layer; set layer as well")
        return self


class AttentionSettings(MaskSettings, HeadSettings):
    """The head whose attention is computed step by step."""

    matrices: Path | None = Field(
        default=None,
        description="TOML or JSON file with matrices to compute with: x, query_weights, key_weights"
        " and value_weights; or query, key and value. It may also have tokens, their names, and"
        " scale = false, which leaves out the division by √d.",
    )
    top_k: int = redefine(FillOptions, "top_k", 8)


MAX_SIZE = 64  # rows, or numbers of a row
Row = Annotated[
    list[Annotated[float, Field(strict=True, ge=-1e6, le=1e6)]],
    Field(min_length=1, max_length=MAX_SIZE),
]
Matrix = Annotated[list[Row], Field(min_length=1, max_length=MAX_SIZE)]
PROJECTED = ("query", "key", "value")


class Matrices(Settings):
    """The matrices of one head, as lists of rows: the content of a file.

    Attributes:
        x: the tokens' vectors, a row per token.
        query_weights: W_q, a row per feature of X: Q = X · W_q; by default Q = X.
        key_weights: W_k likewise.
        value_weights: W_v likewise.
        query: Q itself, a row per token, in place of X; needs key and value as well.
        key: K itself.
        value: V itself.
        tokens: names of the tokens; by default their numbers.
        scale: whether scores are divided by √d.
    """

    x: Matrix | None = None
    query_weights: Matrix | None = None
    key_weights: Matrix | None = None
    value_weights: Matrix | None = None
    query: Matrix | None = None
    key: Matrix | None = None
    value: Matrix | None = None
    tokens: list[str] | None = None
    scale: bool = True

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file, JSON if its name ends with .json, else TOML.

        Raises:
            SettingsError: it can't be read, or a key isn't what it should be.
        """
        text = read_text(path, limit_bytes=1 << 20)
        if path.suffix.lower() == ".json":
            return validate(cls, parse_json(text, str(path)), str(path))
        try:
            return validate(cls, tomllib.loads(text), str(path))
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{path} isn't TOML: {error}") from None

    def list_given(self) -> dict[str, list[list[float]]]:
        """Return the matrices that were given, by name."""
        return self.model_dump(exclude={"tokens", "scale"}, exclude_none=True)

    @model_validator(mode="after")
    def _rows_are_of_one_length(self) -> Self:
        for name, rows in self.list_given().items():
            for number, row in enumerate(rows, start=1):
                if len(row) != len(rows[0]):
                    raise ValueError(
                        f"row {number} of {name} has {pluralize(len(row), 'number')}, and row 1 has"
                        f" {len(rows[0])}; give each row as many"
                    )
        return self
