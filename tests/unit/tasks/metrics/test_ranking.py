"""Metrics of rankings."""

import numpy as np
import pytest
from tests.closeness import assert_close, close

from bertkit.base.errors import InputError
from bertkit.tasks.metrics.ranking import measure_ranking, order_by_score

NAMES = ("ndcg@3", "map@3", "mrr@3", "recall@3", "precision@3")


def test_the_metrics_of_a_query():
    measured = measure_ranking([0, 2, 0, 1], [1, 2, 1, 0], NAMES)
    ideal = 2 + 1 / np.log2(3) + 1 / 2
    expected = (2 / np.log2(3) / ideal, (1 / 2) / 3, 1 / 2, 1 / 3, 1 / 3)
    assert list(measured.values()) == close(expected)


def test_many_queries_are_measured_at_once_and_padding_changes_nothing():
    queries = [([1, 0, 2], [1, 2]), ([0, 0, 0], [1]), ([0, 1, 0], [1, 1, 3, 0])]
    ranked = np.zeros((3, 7))
    judged = np.zeros((3, 5))
    for row, (found, relevance) in enumerate(queries):
        ranked[row, : len(found)] = found
        judged[row, : len(relevance)] = relevance
    together = measure_ranking(ranked, judged, NAMES)
    for row, query in enumerate(queries):
        alone = measure_ranking(*query, NAMES)
        assert_close([together[name][row] for name in NAMES], [alone[name] for name in NAMES])


def test_a_query_without_relevant_or_without_ranked_passages_has_the_value_0():
    for ranked, judged in (([0, 0], [0]), ([0, 0], []), ([], [1]), ([-1, 0], [-1])):
        assert set(measure_ranking(ranked, judged, NAMES).values()) == {0}


def test_fewer_passages_than_ranks():
    measured = measure_ranking([1], [1, 1], ("precision@10", "recall@10", "mrr@10"))
    assert list(measured.values()) == close([0.1, 0.5, 1])


def test_equal_scores_are_ordered_by_descending_name():
    assert order_by_score([1, 2, 1, 1], ["b", "a", "c", "10"]).tolist() == [1, 2, 0, 3]


@pytest.mark.parametrize("name", ["ndcg", "ndcg@", "ndcg@0", "ndcg@x", "auc@3"])
def test_a_name_that_is_no_metric(name):
    with pytest.raises(InputError, match="is no metric of rankings"):
        measure_ranking([1], [1], [name])
