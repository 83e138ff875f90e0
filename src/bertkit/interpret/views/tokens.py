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
    In each head every token distributes 100 % of attention over all tokens. This view shows which
    tokens receive it, and how concentrated it is.

    The text is shaded by the attention that each token receives: the sum over all query tokens,
    averaged over the chosen heads. 1.0 is what it would receive if attention were uniform. The
    shades range from the word with the least attention to the one with the most; [CLS] and [SEP]
    often receive far more than any word.

    Entropy measures how widely a token attends: 0 if it attends to a single token, and higher the
    more tokens it attends to. It is also shown as a number of tokens: an entropy of 1.6 equals
    uniform attention to 5 tokens.

    The grid has a row for each layer and a column for each head. A head is named after the target
    of at least {MIN_SHARE:.0%} of its attention on this text: the next token, the previous one, the
    token itself, [CLS], [SEP], or the same word elsewhere. It is “broad” if its entropy is at least
    {BROAD_SHARE:.0%} of that of uniform attention, and “mixed” otherwise. On another text a head
    may have another pattern.

    To try: choose [CLS] and [SEP] above the grid. Many heads attend to them when a text has nothing
    that they respond to. Choose “previous”, and click the strongest head to see its lines in the
    view “Heads”.
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
