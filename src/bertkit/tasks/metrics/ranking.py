"""Metrics of rankings with graded relevance, equal to those of trec_eval.

Each takes the relevance of the ranked passages in order, `[..., ranks]`, and that of all passages
that were judged for the query, `[..., judged]`, in any order; both may be padded with zeros. So one
call measures one query or many. A passage that wasn't judged has relevance 0; only a relevance
above 0 counts. A query without a relevant passage has the value 0.

Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20
(2002), with linear gains, as in trec_eval.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertkit.base.errors import InputError
from bertkit.tasks.metrics.classification import Numbers, divide

Metric = Callable[[Numbers, Numbers, int], Numbers]


def order_by_score(scores: ArrayLike, names: Sequence[str]) -> NDArray[np.int64]:
    """Return the places of the passages in the order of trec_eval.

    That is by descending score; equal scores by descending name, so that no metric depends on the
    order in which passages came.
    """
    values = np.asarray(scores, dtype=np.float64)
    return np.lexsort((np.asarray(names, dtype=np.str_), values))[::-1]


def ndcg(ranked: Numbers, judged: Numbers, top_k: int) -> Numbers:
    """Return the normalized discounted cumulative gain of the first `top_k`, `[...]`."""
    ideal = -np.sort(-np.maximum(judged, 0), axis=-1)
    return divide(_discount(np.maximum(ranked, 0), top_k), _discount(ideal, top_k))


def average_precision(ranked: Numbers, judged: Numbers, top_k: int) -> Numbers:
    """Return the mean, over all relevant passages, of the precision at their ranks, `[...]`.

    A passage that isn't among the first `top_k` counts as 0. The mean over queries is the MAP.
    """
    is_relevant = ranked[..., :top_k] > 0
    precisions = np.cumsum(is_relevant, axis=-1) / np.arange(1, is_relevant.shape[-1] + 1)
    return divide((precisions * is_relevant).sum(axis=-1), (judged > 0).sum(axis=-1))


def reciprocal_rank(ranked: Numbers, judged: Numbers, top_k: int) -> Numbers:
    """Return 1 / the rank of the first relevant passage, and 0 if it is below `top_k`, `[...]`."""
    del judged
    reciprocals = (ranked[..., :top_k] > 0) / np.arange(1, min(top_k, ranked.shape[-1]) + 1)
    best: Numbers = reciprocals.max(axis=-1, initial=0.0)
    return best


def recall(ranked: Numbers, judged: Numbers, top_k: int) -> Numbers:
    """Return the share of the relevant passages that are among the first `top_k`, `[...]`."""
    found = (ranked[..., :top_k] > 0).sum(axis=-1)
    return divide(found, (judged > 0).sum(axis=-1))


def precision(ranked: Numbers, judged: Numbers, top_k: int) -> Numbers:
    """Return the share of the first `top_k` places that have a relevant passage, `[...]`."""
    del judged
    share: Numbers = (ranked[..., :top_k] > 0).sum(axis=-1) / top_k
    return share


METRICS: dict[str, Metric] = {
    "ndcg": ndcg,
    "map": average_precision,
    "mrr": reciprocal_rank,
    "recall": recall,
    "precision": precision,
}


def measure_ranking(
    ranked: ArrayLike, judged: ArrayLike, names: Iterable[str]
) -> dict[str, Numbers]:
    """Return metrics by name, such as `ndcg@10`, each of one query or of each of many.

    The arguments are described in the module. It is an `InputError` if a name isn't that of a
    metric, `@`, and a number of ranks.
    """
    relevance = np.asarray(ranked, np.float64), np.asarray(judged, np.float64)
    values = {}
    for name in names:
        metric, _, top_k = name.partition("@")
        if metric not in METRICS or not top_k.isdecimal() or int(top_k) < 1:
            known = ", ".join(METRICS)
            raise InputError(f"{name!r} is no metric of rankings: one of {known}, such as ndcg@10")
        values[name] = METRICS[metric](*relevance, int(top_k))
    return values


def _discount(gains: Numbers, top_k: int) -> Numbers:
    """Sum the gains of the first ranks, each divided by the logarithm of its rank plus 1."""
    first = gains[..., :top_k]
    discounted: Numbers = (first / np.log2(np.arange(2, first.shape[-1] + 2))).sum(axis=-1)
    return discounted
