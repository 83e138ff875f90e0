"""The attention of one head step by step, for typed matrices or for a text.

Source: Vaswani et al. 2017, sections 3.2.1 to 3.2.3.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bertkit.base.errors import SettingsError, pluralize
from bertkit.interpret.ablation import HeadName, check_heads
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.observation import find_token
from bertkit.interpret.opening import choose_start
from bertkit.interpret.settings import PROJECTED, AttentionSettings, MatrixSettings
from bertkit.interpret.views.view import ViewInputs
from bertkit.nn.attention import score_keys
from bertkit.nn.masks import BIDIRECTIONAL, MASKS, AttentionMask

MAX_SIZE = 64  # rows, or numbers of a row, of a typed matrix
MAX_NUMBER = 1e6
# Features: noun, alive, pronoun, flat. A pronoun looks for nouns, most of all for living ones.
EXAMPLE = MatrixSettings(
    tokens="cat mat it",
    x="1 1 0 0; 1 0 0 1; 0 0 1 0",
    query_weights="0 0 2 0; 0 2 0 0; 2 2 0 0; 0 0 0 2",
    key_weights="2 0 0 0; 0 1 0 0; 0 0 1 0; 0 0 0 1",
    value_weights="10 0 0 0; 0 10 0 0; 0 0 10 0; 0 0 0 10",
)


@dataclass(frozen=True, eq=False)
class HeadSteps:
    """Query, key and value of one head on one sequence, and what attention makes of them."""

    tokens: tuple[str, ...]  # of the queries
    attended: tuple[str, ...]  # of the keys and values
    query: Float[Tensor, "length features"]
    key: Float[Tensor, "attended features"]
    value: Float[Tensor, "attended value_features"]
    mask: AttentionMask = BIDIRECTIONAL
    is_scaled: bool = True
    name: HeadName | None = None  # of a model's head
    typed: Mapping[str, Tensor] = field(default_factory=lambda: MappingProxyType({}))

    @cached_property
    def products(self) -> Float[Tensor, "length attended"]:
        """Q · Kᵀ: the dot product of each query with each key."""
        return self.query @ self.key.T

    @cached_property
    def allowed(self) -> Bool[Tensor, "length attended"]:
        """For each token, which tokens it may attend to."""
        return self.mask.find_allowed(len(self.query), len(self.key))

    @cached_property
    def scores(self) -> Float[Tensor, "length attended"]:
        """The products divided by √d; minus infinity where the mask hides a key."""
        scores = score_keys(self.query, self.key) if self.is_scaled else self.products
        return scores.masked_fill(~self.allowed, -math.inf)

    @cached_property
    def weights(self) -> Float[Tensor, "length attended"]:
        """The softmax of each row of scores."""
        return self.scores.softmax(dim=-1)

    @cached_property
    def result(self) -> Float[Tensor, "length value_features"]:
        """Y: for each token the sum of all values, each multiplied by its weight."""
        return self.weights @ self.value

    def find(self, token: str) -> int:
        """Return the index of a token that is given by its text or its number from 1."""
        return find_token(self.tokens, token)

    def gather_numbers(self, token: int | None = None) -> dict[str, Any]:
        """Return all numbers, or those of one token; masked scores are None."""
        rows = slice(None) if token is None else token
        return {
            "tokens": list(self.tokens),
            "attended": list(self.attended),
            **{name: matrix.tolist() for name, matrix in self.typed.items()},
            "query": self.query[rows].tolist(),
            "key": self.key.tolist(),
            "value": self.value.tolist(),
            "products": self.products[rows].tolist(),
            "scores": _drop_infinities(self.scores[rows].tolist()),
            "weights": self.weights[rows].tolist(),
            "result": self.result[rows].tolist(),
        }


def _drop_infinities(values: Any) -> Any:
    if isinstance(values, list):
        return list(map(_drop_infinities, values))
    return None if math.isinf(values) else values


def attend_typed(settings: AttentionSettings) -> HeadSteps:
    """Compute the attention of typed matrices; without any, of an example.

    Raises:
        SettingsError: a matrix can't be read, is missing, or doesn't fit the others.
    """
    texts = settings.model_dump(exclude={"tokens"}, include=set(MatrixSettings.model_fields))
    typed = {name: read_matrix(name, text) for name, text in texts.items() if text is not None}
    if not typed:
        names = settings.tokens or EXAMPLE.tokens
        return attend_typed(settings.model_copy(update={**EXAMPLE.model_dump(), "tokens": names}))
    query, key, value = project(typed)
    check_shapes(query, key, value)
    mask = MASKS[settings.mask_name]
    mask.find_allowed(len(query), len(key))  # refuses a mask that doesn't fit
    tokens = name_tokens(settings.tokens, len(query))
    attended = tokens if len(query) == len(key) else name_tokens(None, len(key))
    shown = {name: matrix for name, matrix in typed.items() if name not in PROJECTED}
    return HeadSteps(
        tokens,
        attended,
        query,
        key,
        value,
        mask,
        settings.scale,
        typed=MappingProxyType(shown),
    )


def attend_text(
    model: InspectedModel, text: str, pair: str | None, settings: AttentionSettings
) -> HeadSteps:
    """Compute one head's attention from the query, key and value that a model projects.

    A layer or head that the settings leave out is the one that a view opens on.

    Raises:
        SettingsError: the model has no such head.
        InputError: a text is empty or too long.
    """
    check_heads([HeadName(settings.layer or 1, settings.head or 1)], model.model.config)
    observation = model.observe(model.read(text, pair))
    encoded = observation.encoded
    token = None if settings.token is None else encoded.find(settings.token)
    start = choose_start(ViewInputs(model, observation), settings.layer, settings.head, token)
    name = HeadName(start.layer or 1, start.head or 1)
    heads, head = observation.layers[name.layer - 1], name.head - 1
    tokens = tuple(encoded.tokens)
    query, key, value = (part[head].cpu() for part in (heads.query, heads.key, heads.value))
    mask = MASKS[settings.mask_name or heads.mask.name]
    return HeadSteps(tokens, tokens, query, key, value, mask, settings.scale, name)


def read_matrix(name: str, text: str) -> Float[Tensor, "rows columns"]:
    """Parse rows separated by ; or line breaks, of numbers separated by spaces or commas."""
    lines = (line.replace(",", " ").split() for line in text.replace("\n", ";").split(";"))
    rows = [[_read_number(name, word) for word in line] for line in lines if line]
    lengths = [len(row) for row in rows]
    if not rows:
        raise SettingsError(f"{name} has no numbers; give rows such as '1 0 1; 0 2 0'")
    if len(set(lengths)) > 1:
        number = next(n for n, length in enumerate(lengths, 1) if length != lengths[0])
        raise SettingsError(
            f"row {number} of {name} has {pluralize(lengths[number - 1], 'number')}, and row 1 has"
            f" {lengths[0]}; separate rows by ; and give each as many numbers"
        )
    if max(len(rows), lengths[0]) > MAX_SIZE:
        raise SettingsError(
            f"{name} has {len(rows):,} rows of {lengths[0]:,} numbers; give at most {MAX_SIZE} of"
            " each"
        )
    return torch.tensor(rows, dtype=torch.float64)


def _read_number(name: str, word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        raise SettingsError(
            f"{name} has {word!r:.40}, which isn't a number; give rows such as '1 0 1; 0 2 0'"
        ) from None
    if not abs(number) <= MAX_NUMBER:
        raise SettingsError(f"{name} has {word!r:.40}; give numbers up to a million")
    return number


def project(typed: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return Q, K and V: typed, or X multiplied by the weights that were typed."""
    given = [name for name in PROJECTED if name in typed]
    weights = [name for name in typed if name.endswith("_weights")]
    if "x" not in typed and weights:
        raise SettingsError(f"{weights[0]} multiplies x, which is missing; give x as well")
    if "x" in typed and given:
        raise SettingsError(f"{given[0]} can't be given with x, which it is computed from")
    if "x" not in typed:
        for name in PROJECTED:
            if name not in typed:
                raise SettingsError(f"{name} is missing; give query, key and value, or x")
        query, key, value = (typed[name] for name in PROJECTED)
        return query, key, value
    x = typed["x"]
    for name in weights:
        if len(typed[name]) != x.shape[1]:
            raise SettingsError(
                f"{name} has {pluralize(len(typed[name]), 'row')}, and the rows of x have"
                f" {pluralize(x.shape[1], 'number')}; give {name} a row for each of them"
            )
    query, key, value = (
        x @ typed[f"{name}_weights"] if f"{name}_weights" in typed else x for name in PROJECTED
    )
    return query, key, value


def check_shapes(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Raise a `SettingsError` if Q, K and V don't fit each other."""
    if query.shape[1] != key.shape[1]:
        raise SettingsError(
            f"a query has {pluralize(query.shape[1], 'number')} and a key {key.shape[1]}; their dot"
            " product needs as many of each"
        )
    if len(key) != len(value):
        raise SettingsError(
            f"there are {pluralize(len(key), 'key')} and {pluralize(len(value), 'value')}; each key"
            " needs its value"
        )


def name_tokens(names: str | None, num_tokens: int) -> tuple[str, ...]:
    """Return the tokens' names, by default their numbers."""
    if names is None:
        return tuple(map(str, range(1, num_tokens + 1)))
    tokens = tuple(names.split())
    if len(tokens) != num_tokens:
        raise SettingsError(
            f"tokens has {pluralize(len(tokens), 'name')}, and there are {num_tokens} rows; give a"
            " name for each, separated by spaces"
        )
    return tokens
