"""The token view: attention received, attention entropy, and the pattern of each head.

Source: Clark et al. 2019, "What Does BERT Look At?", section 3.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from bertkit.interpret.patterns import BROAD_SHARE, MIN_SHARE
from bertkit.interpret.views.view import View, ViewInputs, paragraphs

DECIMALS = 3
LEGEND = paragraphs(
    f"""
    In each head every token looks at all tokens, and shares out its attention among them: 100 % in
    all. Here you see who gets it, and how widely it is spread.

    The text is shaded by the attention that each token receives: what all tokens give to it, added
    up, in the mean of the chosen heads. 1.0 is what it would get if all were looked at alike. The
    shades go from the word with the least to the one with the most; [CLS] and [SEP] often get far
    more than any word.

    Entropy says how widely a token looks: 0 if it looks at a single token, and the more, the more
    tokens it looks at. As that is hard to picture, it also stands there as a number of tokens: an
    entropy of 1.6 is that of looking at 5 tokens alike.

    The grid has a row for each layer and a column for each head. A head has the name of the place
    where at least {MIN_SHARE:.0%} of its attention goes on this text: the next token, the previous
    one, the token itself, [CLS], [SEP], or the same word elsewhere. It is “broad” if its entropy is
    at least {BROAD_SHARE:.0%} of what looking at all alike has, and “mixed” if it is nothing of
    that. On another text a head may do something else.

    To try: choose [CLS] and [SEP] above the grid. Many heads look there when a text has nothing of
    what they look for. Choose “previous”, and click the strongest head: the head view shows its
    lines.
    """
)


def collect_attention(inputs: ViewInputs) -> dict[str, Any]:
    """Return the attention received and the entropy of attention given, by head and token.

    Returns:
        "received": the total attention that a token receives, relative to its total under uniform
        attention; "entropy": of the attention that it gives, in nats. Both are layers × heads ×
        length.
    """
    observation = inputs.observation
    received, entropy = [], []
    for layer in observation.layers:
        weights = layer.weights.double().cpu()
        even = _share_evenly(weights.shape[-1], is_causal=observation.is_causal)
        received.append(_round(weights.sum(dim=1) / even))
        entropy.append(_round(torch.special.entr(weights).sum(dim=2)))
    return {"received": received, "entropy": entropy}


def _share_evenly(length: int, *, is_causal: bool) -> Float[Tensor, " length"]:
    """Return the total attention that each token would receive if attention were uniform."""
    weights = torch.ones(length, length, dtype=torch.float64)
    if is_causal:
        weights = weights.tril()
    return (weights / weights.sum(dim=1, keepdim=True)).sum(dim=0)


def _round(numbers: Float[Tensor, "heads length"]) -> list[list[float]]:
    rounded: list[list[float]] = numbers.round(decimals=DECIMALS).tolist()
    return rounded


TOKENS = View(
    name="tokens",
    title="Tokens",
    legend=LEGEND,
    collect=collect_attention,
    supports=lambda inputs: not inputs.is_cross_attention,
)
