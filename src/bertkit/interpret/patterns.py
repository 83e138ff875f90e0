"""Known attention patterns: to the next token, to [SEP], to the same word, or broad.

Source: Clark et al. 2019, "What Does BERT Look At?", sections 3 and 4.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bertkit.tokenization.engine import CLS, SEP

MIN_SHARE = 0.5  # minimum mean share of attention for a head to be named after a pattern
BROAD_SHARE = 0.8  # minimum share of the entropy of uniform attention for a "broad" head
MIXED = "mixed"
BROAD = "broad"
ITSELF = "itself"

Target = Callable[[Sequence[str], Sequence[str]], Bool[Tensor, "length attended"]]


def _shifted(tokens: Sequence[str], offset: int) -> Bool[Tensor, "length length"]:
    return torch.ones(len(tokens) - abs(offset), dtype=torch.bool).diag(offset)


def _named(
    tokens: Sequence[str], attended: Sequence[str], name: str
) -> Bool[Tensor, "length attended"]:
    columns = torch.tensor([other == name for other in attended])
    return columns.expand(len(tokens), -1)


def _same_word(
    tokens: Sequence[str], attended: Sequence[str], ends: Sequence[str]
) -> Bool[Tensor, "length attended"]:
    numbers = {token: number for number, token in enumerate(dict.fromkeys([*tokens, *attended]))}
    numbers |= dict.fromkeys(ends, -1)
    rows, columns = (
        torch.tensor([numbers[token] for token in text]) for text in (tokens, attended)
    )
    return (rows[:, None] == columns) & (columns >= 0)


def list_patterns(cls: str = CLS, sep: str = SEP, *, is_across: bool = False) -> dict[str, Target]:
    """Return the target tokens of each pattern: a row for each query, True where it attends.

    Where queries and keys are of two texts, there are no patterns by position.

    Args:
        cls: the token before the text.
        sep: the token after it.
    """
    across: dict[str, Target] = {
        cls: partial(_named, name=cls),
        sep: partial(_named, name=sep),
        "same word": partial(_same_word, ends=(cls, sep)),
    }
    if is_across:
        return across
    same = across["same word"]
    return {
        "next": lambda tokens, _: _shifted(tokens, 1),
        "previous": lambda tokens, _: _shifted(tokens, -1),
        ITSELF: lambda tokens, _: _shifted(tokens, 0),
        **across,
        "same word": lambda *texts: same(*texts).fill_diagonal_(fill_value=False),
    }


@dataclass(frozen=True)
class HeadPattern:
    """The attention pattern of one head on one text.

    Each share, from 0 to 1, is the mean attention that follows a pattern, over the tokens that have
    a target of it. The entropy is the mean over tokens, in nats: 0 if each attends to a single
    token; if uniform, the mean of the logarithms of how many tokens each may attend to.
    """

    name: str  # the strongest; "broad" if attention is spread, "mixed" if there is none
    shares: dict[str, float]
    entropy: float


def find_patterns(
    weights: Float[Tensor, "heads length attended"],
    tokens: Sequence[str],
    attended: Sequence[str] | None = None,
    allowed: Bool[Tensor, "length attended"] | None = None,
    ends: tuple[str, str] = (CLS, SEP),
) -> list[HeadPattern]:
    """Return the attention pattern of each head of a layer.

    Args:
        weights: the attention weights: a row for each query, a column for each key.
        tokens: the tokens of the queries, including special tokens.
        attended: the tokens of the keys if they are of another text.
        allowed: which keys each query may attend to; None if it is all.
        ends: the special tokens before the text and after it.
    """
    weights = weights.float().cpu()
    if allowed is None:
        allowed = torch.ones(weights.shape[1:], dtype=torch.bool)
    keys = tokens if attended is None else attended
    finders = list_patterns(*ends, is_across=attended is not None)
    targets = {name: find(tokens, keys) for name, find in finders.items()}
    if not allowed.all():  # patterns that the mask leaves; what a token attends to of itself
        kept = {name: target & allowed for name, target in targets.items()}  # counts as that alone
        targets = {
            name: target if name == ITSELF else target.fill_diagonal_(fill_value=False)
            for name, target in kept.items()
            if target.any() or not targets[name].any()
        }
    shares, has_choice = {}, allowed.sum(dim=1) > 1
    for name, target in targets.items():  # the mean, over the rows that have a target
        counted = target & has_choice[:, None]
        rows = (weights * counted).sum(dim=-1)[:, counted.any(dim=1)]
        shares[name] = rows.mean(dim=-1) if rows.numel() else weights.new_zeros(len(weights))
    entropies = torch.special.entr(weights).sum(dim=-1).mean(dim=-1)
    broad = BROAD_SHARE * float(allowed.sum(dim=1).float().log().mean())
    return [
        _describe({name: float(share[head]) for name, share in shares.items()}, entropy, broad)
        for head, entropy in enumerate(entropies.tolist())
    ]


def _describe(shares: dict[str, float], entropy: float, broad: float) -> HeadPattern:
    strongest = max(shares, key=shares.__getitem__)
    if shares[strongest] >= MIN_SHARE:
        return HeadPattern(strongest, shares, entropy)
    return HeadPattern(BROAD if entropy >= broad else MIXED, shares, entropy)
