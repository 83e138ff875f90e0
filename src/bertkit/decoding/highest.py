"""A fast `topk` for scores of a whole vocabulary."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

BLOCK = 64  # scores per block; block maxima are computed first


def find_highest(
    scores: Float[Tensor, "rows vocabulary"], number: int
) -> tuple[Float[Tensor, "rows number"], Int[Tensor, "rows number"]]:
    """Return the highest scores of each row and their indices, highest first; all if fewer exist.

    Like `topk`, but several times as fast on a CPU: the highest scores are in the blocks with the
    highest maxima, and maxima are computed with vector instructions.
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
