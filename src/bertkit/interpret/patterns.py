"""What heads are known to do: look at the next token, at [SEP], at the same word, or everywhere.

Source: Clark et al. 2019, "What Does BERT Look At?", sections 3 and 4.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bertkit.tokenization.engine import CLS, SEP

MIN_SHARE = 0.5  # of a token's attention, in the mean, for a head to have a pattern's name
BROAD_SHARE = 0.8  # of the entropy that attending to all tokens alike has
MIXED = "mixed"
BROAD = "broad"

Target = Callable[[Sequence[str]], Bool[Tensor, "length length"]]


def _shifted(tokens: Sequence[str], offset: int) -> Bool[Tensor, "length length"]:
    return torch.ones(len(tokens) - abs(offset), dtype=torch.bool).diag(offset)


def _named(tokens: Sequence[str], name: str) -> Bool[Tensor, "length length"]:
    columns = torch.tensor([token == name for token in tokens])
    return columns.expand(len(tokens), -1)


def _same_word(tokens: Sequence[str]) -> Bool[Tensor, "length length"]:
    numbers = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    ids = torch.tensor([-1 if token in (CLS, SEP) else numbers[token] for token in tokens])
    is_same = (ids[:, None] == ids) & (ids >= 0)
    return is_same.fill_diagonal_(fill_value=False)


# What each pattern's tokens look at: a row for each token that looks, True where it would.
PATTERNS: dict[str, Target] = {
    "next": lambda tokens: _shifted(tokens, 1),
    "previous": lambda tokens: _shifted(tokens, -1),
    "itself": lambda tokens: _shifted(tokens, 0),
    "[CLS]": lambda tokens: _named(tokens, CLS),
    "[SEP]": lambda tokens: _named(tokens, SEP),
    "same word": _same_word,
}


@dataclass(frozen=True)
class HeadPattern:
    """What one head does on one text.

    Attributes:
        name: of the strongest pattern; "broad" where attention is spread, "mixed" for none.
        shares: for each of `PATTERNS`, the mean attention that goes there, from 0 to 1, over the
            tokens that have such a place.
        entropy: mean of the tokens' entropies in nats; 0 looks at one token, log(length) at all.
    """

    name: str
    shares: dict[str, float]
    entropy: float


def find_patterns(
    weights: Float[Tensor, "heads length length"], tokens: Sequence[str]
) -> list[HeadPattern]:
    """What each head of a layer does.

    Args:
        weights: a row for each token that looks.
        tokens: of the text, special ones included.
    """
    targets = {name: find(tokens) for name, find in PATTERNS.items()}
    shares = {name: _mean_share(weights, target) for name, target in targets.items()}
    entropies = -torch.special.xlogy(weights, weights).sum(dim=-1).mean(dim=-1)
    return [
        _describe(
            {name: float(share[head]) for name, share in shares.items()}, entropy, len(tokens)
        )
        for head, entropy in enumerate(entropies.tolist())
    ]


def _mean_share(
    weights: Float[Tensor, "heads length length"], target: Bool[Tensor, "length length"]
) -> Float[Tensor, " heads"]:
    """Attention that goes where `target` is, in the mean over the rows that have a place."""
    has_place = target.any(dim=1)
    if not has_place.any():
        return weights.new_zeros(len(weights))
    return (weights * target).sum(dim=-1)[:, has_place].mean(dim=-1)


def _describe(shares: dict[str, float], entropy: float, length: int) -> HeadPattern:
    strongest = max(shares, key=shares.__getitem__)
    if shares[strongest] >= MIN_SHARE:
        name = strongest
    else:
        name = BROAD if entropy >= BROAD_SHARE * math.log(length) else MIXED
    return HeadPattern(name, shares, entropy)
