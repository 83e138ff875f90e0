"""The highest of many scores."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

BLOCK = 64  # scores of which first the maximum is found


def find_highest(
    scores: Float[Tensor, "rows vocabulary"], number: int
) -> tuple[Float[Tensor, "rows number"], Int[Tensor, "rows number"]]:
    """The highest scores of each row and their places, the highest first; all where they are few.

    As `topk`, and several times as fast on a CPU: the highest are in the blocks of the highest
    maxima, and maxima are found with vector instructions.
    """
    num_scores = scores.shape[1]
    num_blocks = num_scores // BLOCK
    if num_blocks <= 2 * number:
        best = scores.topk(min(number, num_scores))
        return best.values, best.indices
    blocks = scores[:, : num_blocks * BLOCK].view(-1, num_blocks, BLOCK)
    chosen = blocks.amax(dim=-1).topk(number).indices[:, :, None]
    inside = torch.arange(BLOCK, device=scores.device)
    rest = torch.arange(num_blocks * BLOCK, num_scores, device=scores.device)
    places = torch.cat([(chosen * BLOCK + inside).flatten(1), rest.expand(len(scores), -1)], dim=1)
    best = scores.gather(1, places).topk(number)
    return best.values, places.gather(1, best.indices)
