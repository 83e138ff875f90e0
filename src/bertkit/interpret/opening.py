"""Choose the head and token that a page opens on, and state what that token attends to."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bertkit.interpret.ablation import HeadName
from bertkit.interpret.observation import EncodedText
from bertkit.interpret.views.view import ViewInputs
from bertkit.reports.text import format_percent


@dataclass(frozen=True)
class Start:
    """The initial selection on a page."""

    layer: int | None = None  # from 1; None for the first
    head: int | None = None  # from 1; None for all heads of the layer
    token: int | None = None  # from 0, as if it had been clicked; None for no token
    is_mean: bool = True  # whether a view of the mean of all layers begins with that mean


def choose_start(
    inputs: ViewInputs, layer: int | None = None, head: int | None = None, token: int | None = None
) -> Start:
    """Complete a selection with the most telling attention weight of what it leaves open.

    A weight between two words is telling if it is larger than the mean of the other tokens' weights
    to the same word, and if it reaches far: the excess is multiplied by the logarithm of the
    distance. So [CLS], [SEP], punctuation, the token itself and its neighbors are never chosen.
    Attention from one text to another has no distance.
    """
    observation = inputs.observation
    is_candidate = find_candidates(inputs)
    if token is None and observation.attended is None:
        is_candidate &= torch.tensor(_are_words(observation.encoded))[:, None]
    num_attending = observation.allowed.sum(dim=0)
    best, start = 0.0, Start(layer, head, token, is_mean=layer is None)
    for number, heads in enumerate(observation.layers, start=1):
        if layer not in (None, number):
            continue
        weights = heads.weights.float().cpu()
        others = (weights.sum(dim=1, keepdim=True) - weights) / (num_attending - 1).clamp(min=1)
        scores = (weights - others) * is_candidate
        if observation.attended is None:
            scores *= _find_distances(weights.shape[-1]).clamp(min=1).log()
        for index in range(len(scores)):
            if head not in (None, index + 1) or HeadName(number, index + 1) in observation.without:
                continue
            rows = scores[index].amax(dim=-1)
            chosen = int(rows.argmax()) if token is None else token
            if rows[chosen] > best:
                best = float(rows[chosen])
                start = Start(number, index + 1, chosen, is_mean=layer is None)
    return start


def find_candidates(inputs: ViewInputs) -> Bool[Tensor, "length attended"]:
    """Mark the words that a finding can name for each token: a row for each query."""
    encoded = inputs.observation.encoded
    if inputs.observation.attended is not None:
        return torch.tensor(_are_words(inputs.observation.attended)).expand(len(encoded.tokens), -1)
    are_words = torch.tensor(_are_words(encoded))
    words, tokens = torch.tensor(encoded.words), encoded.tokens
    kinds = torch.tensor([tokens.index(token) for token in tokens])
    is_near = _find_distances(len(tokens)) <= 1
    is_same = (words[:, None] == words) | (kinds[:, None] == kinds)
    return are_words & ~is_near & ~is_same


def _are_words(encoded: EncodedText) -> list[bool]:
    """Tell for each token whether it is part of a word, not [CLS], [SEP] or punctuation."""
    return [
        word >= 0 and any(letter.isalnum() for letter in token)
        for token, word in zip(encoded.tokens, encoded.words, strict=True)
    ]


def _find_distances(length: int) -> Float[Tensor, "length length"]:
    positions = torch.arange(float(length))
    return (positions[:, None] - positions).abs()


NUM_LISTED = 4


@dataclass(frozen=True)
class Finding:
    """What the selected token attends to most, in words and numbers."""

    title: str
    in_head: str  # the token's strongest weights in this head
    in_other_heads: str  # the same weight in the heads where it is strongest, and its mean


def find_key(inputs: ViewInputs, start: Start) -> int | None:
    """Return the place of the word that the selected token attends to most, if it has one."""
    layer, head, token = start.layer, start.head, start.token
    if layer is None or head is None or token is None:
        return None
    weights = inputs.observation.layers[layer - 1].weights[head - 1, token].float().cpu()
    candidates = weights * find_candidates(inputs)[token]
    key = int(candidates.argmax())
    return key if candidates[key] > 0 else None


def state_finding(inputs: ViewInputs, start: Start) -> Finding | None:
    """State the word that the selected token attends to most; None without one token and head."""
    layer, head, token = start.layer, start.head, start.token
    key = find_key(inputs, start)
    if key is None or layer is None or head is None or token is None:
        return None
    observation, name = inputs.observation, HeadName(layer, head)
    weights = torch.stack([heads.weights[:, token].float().cpu() for heads in observation.layers])
    share = format_percent(float(weights[layer - 1, head - 1, key]))
    others = observation.columns.tokens
    word, other = observation.encoded.tokens[token], others[key]
    subject = (
        f"“{word}” attends" if observation.attended is None else f"After “{word}” the model attends"
    )
    shares = weights[layer - 1, head - 1].tolist()
    strongest = _rank(weights[layer - 1, head - 1])
    listed = ", ".join(f"{others[index]} {format_percent(shares[index])}" for index in strongest)
    return Finding(
        f"{subject} to “{other}” with {share} in head {name}",
        f"“{word}” in head {name}: {listed}",
        f"“{word}” to “{other}” in other heads: {_list_heads(weights[:, :, key], name)}",
    )


def _list_heads(weights: Float[Tensor, "layers heads"], found: HeadName) -> str:
    """List the other heads with the largest weights, and the mean of all."""
    num_heads = weights.shape[1]
    names = [HeadName(index // num_heads + 1, index % num_heads + 1) for index in _rank(weights)]
    listed = ", ".join(
        f"{name} {format_percent(float(weights[name.layer - 1, name.head - 1]))}"
        for name in names
        if name != found
    )
    return f"{listed}; mean of all {weights.numel()}: {format_percent(float(weights.mean()))}"


def _rank(weights: Float[Tensor, "..."]) -> list[int]:
    """Return the flat indices of the largest weights, the largest first."""
    indices: list[int] = weights.flatten().argsort(descending=True, stable=True).tolist()
    return indices[:NUM_LISTED]
