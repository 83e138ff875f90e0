"""The attention of one head step by step, for given matrices or for a text.

Source: Vaswani et al. 2017, sections 3.2.1 to 3.2.3.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bertkit.base.errors import SettingsError, pluralize
from bertkit.base.json_files import with_nulls
from bertkit.interpret.ablation import HeadName, check_heads, count_layer
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.observation import find_token
from bertkit.interpret.opening import choose_start
from bertkit.interpret.settings import PROJECTED, AttentionSettings, Matrices
from bertkit.interpret.views.view import ViewInputs
from bertkit.nn.attention import score_keys
from bertkit.nn.masks import BIDIRECTIONAL, AttentionMask, choose_mask
from bertkit.reports.interactive import JsonObject

# Features: noun, alive, pronoun, flat. A pronoun looks for nouns, most of all for living ones.
EXAMPLE = Matrices(
    tokens=["cat", "mat", "it"],
    x=[[1, 1, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0]],
    query_weights=[[0, 0, 2, 0], [0, 2, 0, 0], [2, 2, 0, 0], [0, 0, 0, 2]],
    key_weights=[[2, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
    value_weights=[[10, 0, 0, 0], [0, 10, 0, 0], [0, 0, 10, 0], [0, 0, 0, 10]],
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
    bias: Float[Tensor, "length attended"] | None = None  # added to the scores
    name: HeadName | None = None  # of a model's head
    given: Mapping[str, Tensor] = field(default_factory=dict)  # X and weights

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
        """The products divided by √d, and the bias; minus infinity where the mask hides a key."""
        scores = score_keys(self.query, self.key) if self.is_scaled else self.products
        scores = scores if self.bias is None else scores + self.bias
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

    def gather_numbers(self, token: int | None = None) -> JsonObject:
        """Return all numbers, or those of one token; masked scores are None."""
        rows = slice(None) if token is None else token
        return {
            "tokens": list(self.tokens),
            "attended": list(self.attended),
            **{name: matrix.tolist() for name, matrix in self.given.items()},
            "query": self.query[rows].tolist(),
            "key": self.key.tolist(),
            "value": self.value.tolist(),
            "products": self.products[rows].tolist(),
            "scores": with_nulls(self.scores[rows].tolist()),
            "weights": self.weights[rows].tolist(),
            "result": self.result[rows].tolist(),
        }


def attend_given(matrices: Matrices, mask: AttentionMask = BIDIRECTIONAL) -> HeadSteps:
    """Compute the attention of given matrices; without any, of an example.

    Raises:
        SettingsError: a matrix is missing, or doesn't fit the others.
    """
    if not (rows := matrices.list_given()):
        rows = EXAMPLE.list_given()
        matrices = matrices.model_copy(update={"tokens": matrices.tokens or EXAMPLE.tokens})
    given = {name: torch.tensor(row, dtype=torch.float64) for name, row in rows.items()}
    query, key, value = project(given)
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
    mask.find_allowed(len(query), len(key))  # refuses a mask that doesn't fit
    tokens = tuple(matrices.tokens or map(str, range(1, len(query) + 1)))
    if len(tokens) != len(query):
        raise SettingsError(
            f"tokens has {pluralize(len(tokens), 'name')}, and there are {len(query)} rows; give a"
            " name for each"
        )
    return HeadSteps(
        tokens,
        tokens if len(query) == len(key) else tuple(map(str, range(1, len(key) + 1))),
        query,
        key,
        value,
        mask,
        matrices.scale,
        given={name: matrix for name, matrix in given.items() if name not in PROJECTED},
    )


def attend_text(
    model: InspectedModel,
    text: str,
    pair: str | None,
    settings: AttentionSettings,
    *,
    is_scaled: bool = True,
) -> HeadSteps:
    """Compute one head's attention from the query, key and value that a model projects.

    A layer or head that the settings leave out is the one that a view opens on.

    Raises:
        SettingsError: the model has no such head.
        InputError: a text is empty or too long.
    """
    layer = count_layer(settings.layer, model.model.config)
    check_heads([HeadName(layer or 1, settings.head or 1)], model.model.config)
    observation = model.observe(model.read(text, pair))
    encoded = observation.encoded
    token = None if settings.token is None else encoded.find(settings.token)
    start = choose_start(ViewInputs(model, observation), layer, settings.head, token)
    name = HeadName(start.layer or 1, start.head or 1)
    heads, head = observation.layers[name.layer - 1], name.head - 1
    tokens = tuple(encoded.tokens)
    query, key, value = (part[head].cpu() for part in (heads.query, heads.key, heads.value))
    mask = choose_mask(settings, heads.mask)
    bias = None if heads.bias is None else heads.bias[head].cpu()
    return HeadSteps(tokens, tokens, query, key, value, mask, is_scaled, bias, name)


def project(given: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return Q, K and V as they are given, or X multiplied by the weights."""
    parts = [name for name in PROJECTED if name in given]
    weights = [name for name in given if name.endswith("_weights")]
    if "x" not in given and weights:
        raise SettingsError(f"{weights[0]} multiplies x, which is missing; give x as well")
    if "x" in given and parts:
        raise SettingsError(f"{parts[0]} can't be given with x, which it is computed from")
    if "x" not in given:
        for name in PROJECTED:
            if name not in given:
                raise SettingsError(f"{name} is missing; give query, key and value, or x")
        query, key, value = (given[name] for name in PROJECTED)
        return query, key, value
    x = given["x"]
    for name in weights:
        if len(given[name]) != x.shape[1]:
            raise SettingsError(
                f"{name} has {pluralize(len(given[name]), 'row')}, and the rows of x have"
                f" {pluralize(x.shape[1], 'number')}; give {name} a row for each of them"
            )
    query, key, value = (
        x @ given[f"{name}_weights"] if f"{name}_weights" in given else x for name in PROJECTED
    )
    return query, key, value
