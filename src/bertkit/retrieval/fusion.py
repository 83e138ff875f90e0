"""One ranking made of several, by reciprocal rank fusion.

Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual
Rank Learning Methods" (SIGIR 2009).
"""

from collections import defaultdict
from collections.abc import Sequence

RANK_CONSTANT = 10  # added to each rank, so that the first ranks don't decide alone; measured


def fuse(
    rankings: Sequence[Sequence[int]], constant: int = RANK_CONSTANT
) -> list[tuple[int, float]]:
    """Join rankings of rows, best first; of equal rows, that of the first ranking comes first.

    The score of a row is the sum of 1 / (constant + rank) over the rankings that have it, scaled so
    that a row that is first in all of them has 1.
    """
    scores: defaultdict[int, float] = defaultdict(float)
    for ranking in rankings:
        for place, row in enumerate(ranking, start=1):
            scores[row] += (constant + 1) / (constant + place) / len(rankings)
    return sorted(scores.items(), key=lambda item: -item[1])
