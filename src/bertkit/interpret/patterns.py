"""What heads are known to do: look at the next token, at [SEP], at the same word, or everywhere.

Source: Clark et al. 2019, "What Does BERT Look At?", sections 3 and 4.
"""

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

Target = Callable[[Sequence[str], Sequence[str]], Bool[Tensor, "length others"]]


def _shifted(tokens: Sequence[str], offset: int) -> Bool[Tensor, "length length"]:
    return torch.ones(len(tokens) - abs(offset), dtype=torch.bool).diag(offset)


def _named(
    tokens: Sequence[str], others: Sequence[str], name: str
) -> Bool[Tensor, "length others"]:
    columns = torch.tensor([other == name for other in others])
    return columns.expand(len(tokens), -1)


def _same_word(tokens: Sequence[str], others: Sequence[str]) -> Bool[Tensor, "length others"]:
    numbers = {token: number for number, token in enumerate(dict.fromkeys([*tokens, *others]))}
    numbers |= {CLS: -1, SEP: -1}
    rows, columns = (torch.tensor([numbers[token] for token in each]) for each in (tokens, others))
    return (rows[:, None] == columns) & (columns >= 0)


# What each pattern's tokens look at: a row for each token that looks, True where it would. Places
# mean nothing where one text looks at another.
ACROSS: dict[str, Target] = {
    "[CLS]": lambda tokens, others: _named(tokens, others, CLS),
    "[SEP]": lambda tokens, others: _named(tokens, others, SEP),
    "same word": _same_word,
}
PATTERNS: dict[str, Target] = {
    "next": lambda tokens, _: _shifted(tokens, 1),
    "previous": lambda tokens, _: _shifted(tokens, -1),
    "itself": lambda tokens, _: _shifted(tokens, 0),
    "[CLS]": ACROSS["[CLS]"],
    "[SEP]": ACROSS["[SEP]"],
    "same word": lambda tokens, others: _same_word(tokens, others).fill_diagonal_(fill_value=False),
}


@dataclass(frozen=True)
class HeadPattern:
    """What one head does on one text.

    Attributes:
        name: of the strongest pattern; "broad" where attention is spread, "mixed" for none.
        shares: for each of `PATTERNS` that there can be, the mean attention that goes there, from 0
            to 1, over the tokens that have such a place.
        entropy: mean of the tokens' entropies in nats; 0 looks at one token, log(length) at all;
            left to right the mean of log(1), …, log(length).
    """

    name: str
    shares: dict[str, float]
    entropy: float


def find_patterns(
    weights: Float[Tensor, "heads length others"],
    tokens: Sequence[str],
    others: Sequence[str] | None = None,
    *,
    is_causal: bool = False,
) -> list[HeadPattern]:
    """What each head of a layer does.

    Args:
        weights: a row for each token that looks, a column for each that is seen.
        tokens: of the text that looks, special ones included.
        others: of the text that is looked at; None where it is the same.
        is_causal: left to right: a token sees itself and those before it.
    """
    weights = weights.float().cpu()
    if others is None:
        targets = {name: find(tokens, tokens) for name, find in PATTERNS.items()}
    else:
        targets = {name: find(tokens, others) for name, find in ACROSS.items()}
    if is_causal:
        targets = {name: _in_sight(name, target) for name, target in targets.items()}
        del targets["next"]
    shares = {name: _mean_share(weights, target) for name, target in targets.items()}
    entropies = torch.special.entr(weights).sum(dim=-1).mean(dim=-1)
    broad = BROAD_SHARE * float(count_seen(weights, is_causal=is_causal).log().mean())
    return [
        _describe({name: float(share[head]) for name, share in shares.items()}, entropy, broad)
        for head, entropy in enumerate(entropies.tolist())
    ]


def count_seen(
    weights: Float[Tensor, "heads length others"], *, is_causal: bool
) -> Float[Tensor, " length"]:
    """How many tokens each sees."""
    _, num_tokens, num_others = weights.shape
    if is_causal:
        return torch.arange(1.0, num_tokens + 1)
    return torch.full((num_tokens,), float(num_others))


def _in_sight(name: str, target: Bool[Tensor, "length length"]) -> Bool[Tensor, "length length"]:
    """Left to right: where a token can look; the first has no choice, and tells nothing."""
    seen = target.tril(0 if name == "itself" else -1)
    seen[0] = False
    return seen


def _mean_share(
    weights: Float[Tensor, "heads length others"], target: Bool[Tensor, "length others"]
) -> Float[Tensor, " heads"]:
    """Attention that goes where `target` is, in the mean over the rows that have a place."""
    has_place = target.any(dim=1)
    if not has_place.any():
        return weights.new_zeros(len(weights))
    return (weights * target).sum(dim=-1)[:, has_place].mean(dim=-1)


def _describe(shares: dict[str, float], entropy: float, broad: float) -> HeadPattern:
    strongest = max(shares, key=shares.__getitem__)
    if shares[strongest] >= MIN_SHARE:
        return HeadPattern(strongest, shares, entropy)
    return HeadPattern(BROAD if entropy >= broad else MIXED, shares, entropy)
