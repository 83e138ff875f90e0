"""Sampling of tokens with temperature, top-k and top-p.

Source: top-k: Fan et al. 2018, "Hierarchical Neural Story Generation"; top-p: Holtzman et al. 2019,
"The Curious Case of Neural Text Degeneration".
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from bertkit.decoding.settings import DecodingSettings


def draw_tokens(
    scores: Float[Tensor, "rows vocabulary"],
    settings: DecodingSettings,
    generators: Sequence[np.random.Generator],
) -> Int[Tensor, " rows"]:
    """Sample a token for each row with the row's own generator.

    Each generator yields one number per call, so a row's tokens don't depend on other rows.
    """
    chances = sharpen(scores, settings).softmax(dim=-1, dtype=torch.float64).cumsum(dim=-1)
    numbers = [[generator.random()] for generator in generators]
    wanted = torch.tensor(numbers, dtype=torch.float64, device=scores.device) * chances[:, -1:]
    # If a row has no possible token, its result is arbitrary; the caller sees that by its score.
    return torch.searchsorted(chances, wanted, right=True)[:, 0].clamp(max=scores.shape[1] - 1)


def sharpen(
    scores: Float[Tensor, "rows vocabulary"], settings: DecodingSettings
) -> Float[Tensor, "rows vocabulary"]:
    """Apply temperature, top-k and top-p; excluded tokens get minus infinity."""
    if settings.temperature != 1.0:
        scores = scores / settings.temperature
    if settings.top_k is not None and settings.top_k < scores.shape[1]:
        least = scores.topk(settings.top_k).values[:, -1:]
        scores = scores.masked_fill(scores < least, -math.inf)
    if settings.top_p is not None:
        ordered = scores.sort(descending=True).values
        shares = ordered.softmax(dim=-1, dtype=torch.float64)
        is_kept = shares.cumsum(dim=-1) - shares < settings.top_p
        least = ordered.gather(1, is_kept.sum(dim=-1, keepdim=True).clamp(min=1) - 1)
        scores = scores.masked_fill(scores < least, -math.inf)
    return scores
