"""Predictions and scorings of texts that are compared: ranked passages, and similar pairs.

The tasks that train sentence encoders and rerankers share them. Their scorings keep a value of each
row, so that two models are compared on the same rows.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bertkit.reports.text import format_number
from bertkit.tasks.evaluation import Example, Numbers, Prediction, Statistic, TaskScoring
from bertkit.tasks.metrics.classification import weighted_mean
from bertkit.tasks.metrics.correlation import pearson, spearman
from bertkit.tasks.metrics.ranking import measure_ranking
from bertkit.tasks.task import TaskPrediction

TOP_K = 10  # ranks that the metrics look at
NDCG, MRR, RECALL = RANKING_METRICS = (f"ndcg@{TOP_K}", f"mrr@{TOP_K}", f"recall@{TOP_K}")


@dataclass(frozen=True)
class RowValues:
    """What a metric needs of each row.

    Attributes:
        values: `[rows]`; the metric is their mean, or their rank correlation with `truth`.
        truth: the true similarity of each row; None if the metric is a mean.
        start: the values before training, where the data know them, as they do if a reranker gets
            passages that a retriever has ordered; None if they are those of the untrained model.
    """

    values: Numbers
    truth: Numbers | None = None
    start: Numbers | None = None

    @property
    def before(self) -> "RowValues":
        """The values before training, if these are those of the untrained model."""
        return self if self.start is None else RowValues(self.start, self.truth)

    def measure(self, weights: Numbers) -> Numbers:
        """Compute the metric on the set that contains each row as often as its weight says.

        There is one value for each row of `weights`, `[..., rows]`; NaN if it isn't defined.
        """
        if self.truth is not None:
            return spearman(self.truth, self.values, weights)
        total = weights.sum(axis=-1)
        mean = weights @ self.values / np.where(total > 0, total, 1.0)
        return np.where(total > 0, mean, np.nan)

    def find_gains(self, start: "RowValues") -> Numbers:
        """Return by how much each row is better than at the start.

        Of a rank correlation, that is by how much closer the row's rank is to its true one, as a
        share of all ranks.
        """
        if self.truth is None:
            return self.values - start.values
        truth, before, after = map(_rank, (self.truth, start.values, self.values))
        gains: Numbers = (abs(before - truth) - abs(after - truth)) / len(truth)
        return gains


def _rank(values: Numbers) -> Numbers:
    """Return the ranks of numbers; equal ones get the mean of theirs."""
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Numbers = (np.cumsum(counts) - (counts - 1) / 2)[groups]
    return ranks


class ComparedScoring(TaskScoring[Example, Prediction]):
    """Base of scorings by which the trained model is compared with that before training."""

    @property
    @abstractmethod
    def row_values(self) -> RowValues:
        """What the main metric needs of each example."""


@dataclass(frozen=True)
class RankedQuery(TaskPrediction):
    """How a model ranks passages for a query, and where the relevant ones are.

    Attributes:
        query: its text.
        passage: the passage that is ranked first.
        expected: the relevant passage that is ranked highest; "" if there is none.
        rank: of that passage, from 1; 0 if there is none.
        num_passages: that are ranked.
        metrics: of `RANKING_METRICS`, in their order.
        start_ndcg: the first of them before training, if the data know it.
    """

    query: str
    passage: str
    expected: str
    rank: int
    num_passages: int
    metrics: tuple[float, ...]
    start_ndcg: float | None = None

    @classmethod
    def of(
        cls,
        query: str,
        passages: Sequence[str],
        scores: npt.ArrayLike,
        relevance: npt.ArrayLike,
        start_scores: npt.ArrayLike | None = None,
    ) -> Self:
        """Rank passages, at least one, by their scores; equal scores are ordered as in trec_eval.

        A passage that is the query itself is left out, unless it is relevant: as nothing is more
        similar, it would only hide where the others are.

        Args:
            scores: `[passages]`.
            relevance: `[passages]`, over 0 if a passage is relevant; all that are, are among them.
            start_scores: `[passages]`, of the retriever that found them.
        """
        judged, values = np.asarray(relevance, np.float64), np.asarray(scores, np.float64)
        if query in passages:
            kept = [n for n, text in enumerate(passages) if text != query or judged[n] > 0]
            if 0 < len(kept) < len(passages):
                starts = None if start_scores is None else np.asarray(start_scores)[kept]
                texts = [passages[number] for number in kept]
                return cls.of(query, texts, values[kept], judged[kept], starts)
        first, ndcg, mrr, recall = _measure(passages, values, judged)
        relevant = np.flatnonzero(judged > 0)
        expected, rank = "", 0
        if len(relevant):
            best = _order(passages, values, relevant)[0]
            expected, tied = passages[best], np.flatnonzero(values == values[best]).tolist()
            rank = 1 + int((values > values[best]).sum())
            rank += sum(passages[place] > expected for place in tied)
        start = None
        if start_scores is not None:
            start = _measure(passages, np.asarray(start_scores, np.float64), judged)[1]
        metrics = (ndcg, mrr, recall)
        return cls(query, passages[first], expected, rank, len(passages), metrics, start)

    def describe(self) -> str:
        """Return the rank of the relevant passage, and the query."""
        return f"{self.rank:,} of {self.num_passages:,}: {self.query}"


def _order(passages: Sequence[str], scores: Numbers, places: npt.NDArray[np.int64]) -> list[int]:
    """Order some of the passages as trec_eval: by score, and equal ones by descending text."""
    chosen: list[int] = places.tolist()
    return sorted(chosen, key=lambda place: (scores[place], passages[place]), reverse=True)


def _measure(
    passages: Sequence[str], scores: Numbers, judged: Numbers
) -> tuple[int, float, float, float]:
    """Return the place of the first passage and the metrics of a query."""
    last = len(scores) - min(TOP_K, len(scores))
    # Only what may be among the first ranks is sorted: there may be many thousands.
    places = np.flatnonzero(scores >= np.partition(scores, last)[last])
    ranked = _order(passages, scores, places)[:TOP_K]
    found = measure_ranking(judged[ranked], judged, RANKING_METRICS)
    return ranked[0], float(found[NDCG]), float(found[MRR]), float(found[RECALL])


class RankingScoring(ComparedScoring[Example, RankedQuery]):
    """Metrics of rankings, each the mean over queries, and the queries whose answer ranks low."""

    @cached_property
    def values(self) -> Numbers:
        """The metrics of each query, `[queries, metrics]`."""
        found = np.array([found.metrics for found in self.predictions], dtype=np.float64)
        return found.reshape(-1, len(RANKING_METRICS))

    @property
    def metrics(self) -> dict[str, float]:
        """The means over queries; NaN if there are none."""
        if not len(self.values):
            return dict.fromkeys(RANKING_METRICS, np.nan)
        return dict(zip(RANKING_METRICS, self.values.mean(axis=0).tolist(), strict=True))

    @property
    def statistics(self) -> dict[str, Statistic]:
        """The same, as functions of weights; none of no queries."""
        if not len(self.values):
            return {}
        each = zip(RANKING_METRICS, self.values.T, strict=True)
        return {name: partial(weighted_mean, values) for name, values in each}

    @property
    def errors(self) -> Numbers:
        """0 if a relevant passage is first, and closer to 1 the lower it is ranked."""
        ranks = np.array([found.rank for found in self.predictions], dtype=np.float64)
        return np.where(ranks > 0, 1.0 - 1.0 / np.maximum(ranks, 1.0), 1.0)

    def contrast(self, number: int) -> tuple[str, str]:
        """Return the relevant passage with its rank, and that ranked first."""
        found = self.predictions[number]
        return f"rank {found.rank:,}: {found.expected}", found.passage

    @property
    def row_values(self) -> RowValues:
        """The nDCG of each query, and that before training if all queries know it."""
        starts = [found.start_ndcg for found in self.predictions]
        known = [start for start in starts if start is not None]
        start = np.array(known, dtype=np.float64) if len(known) == len(starts) else None
        return RowValues(self.values[:, 0], start=start)


def score_rankings(
    examples: Sequence[Example], predictions: Sequence[RankedQuery]
) -> RankingScoring[Example]:
    """Score rankings, one for each example; those that have the same query count once."""
    first: dict[str, int] = {}
    for number, found in enumerate(predictions):
        first.setdefault(found.query, number)
    places = list(first.values())
    return RankingScoring([examples[n] for n in places], [predictions[n] for n in places])


@dataclass(frozen=True)
class Similarity(TaskPrediction):
    """How similar two texts are, such as the cosine of their vectors."""

    value: float

    def describe(self) -> str:
        """Return the number."""
        return format_number(self.value)


class SimilarityScoring(ComparedScoring[Any, Similarity]):
    """Correlations of similarities with the true ones; NaN if either are all equal.

    Examples have the true similarity, on any scale, as their `number`.
    """

    @cached_property
    def truth(self) -> Numbers:
        """The true similarities."""
        return np.array([example.number for example in self.examples], dtype=np.float64)

    @cached_property
    def guess(self) -> Numbers:
        """The predicted ones."""
        return np.array([found.value for found in self.predictions], dtype=np.float64)

    @property
    def metrics(self) -> dict[str, float]:
        """Both correlations."""
        return {name: float(find(None)) for name, find in self.statistics.items()}  # type: ignore[arg-type]

    @property
    def statistics(self) -> dict[str, Statistic]:
        """The same, as functions of weights."""
        found = {"spearman": spearman, "pearson": pearson}
        return {name: partial(find, self.truth, self.guess) for name, find in found.items()}

    @property
    def errors(self) -> Numbers:
        """How far the rank of each pair is from its true one, as a share of all ranks."""
        return np.abs(_rank(self.guess) - _rank(self.truth)) / len(self.truth)

    def contrast(self, number: int) -> tuple[str, str]:
        """Return both similarities."""
        return f"{self.truth[number]:.6g}", format_number(self.guess[number])

    @property
    def row_values(self) -> RowValues:
        """The similarities, predicted and true."""
        return RowValues(self.guess, self.truth)


def fold_text(text: str) -> str:
    """Return a text in the form in which texts count as the same: without case and spaces."""
    return " ".join(text.casefold().split())


def link_groups(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a group for each row, the same for rows that share a text, directly or by others.

    Texts that differ only in case or white space are the same.
    """
    parents = list(range(len(rows)))

    def find(row: int) -> int:
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = parents[row]
        return row

    owners: dict[str, int] = {}
    for row, texts in enumerate(rows):
        for text in map(fold_text, texts):
            parents[find(row)] = find(owners.setdefault(text, row))
    return [str(find(row)) for row in range(len(rows))]


def describe_shared(train: Sequence[Any], held_out: Sequence[Any]) -> str:
    """Say how many held-out rows share a query or its answer with training rows; "" if none do.

    Texts that differ only in case or white space are the same.
    """
    known = {fold_text(text) for one in train for text in (one.query, *one.positives)}
    num_shared = sum(
        any(fold_text(text) in known for text in (one.query, *one.positives)) for one in held_out
    )
    if not num_shared:
        return ""
    return (
        f"{num_shared:,} of {len(held_out):,} held-out rows share a query or its passage with"
        " training rows: metrics on them say less about other texts"
    )
